package report

import (
	"math/big"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// A Forecast says when a network is full if it goes on as since an earlier run.
type Forecast struct {
	Full  time.Time `json:"full"`
	Since time.Time `json:"since"`
}

const (
	// A forecast is by runs that were at least an hour ago, and at most a day and what may be between uses in the ledger.
	leastSince = time.Hour
	mostSince  = 30 * time.Hour

	// mostAhead is how far a forecast looks ahead.
	mostAhead = 7 * 24 * time.Hour
)

// Used counts the allocations of networks, by the backend and the name of the network. Those that are gone do not count.
// It leaves out the networks of which not all pools were read, and those that are too many for the ledger.
func (y Layout) Used(gone map[ipam.PoolRef]int) map[string]int {
	allocated, used := make(map[ipam.PoolRef]int), make(map[string]int)
	for _, p := range y.Pools {
		allocated[p.ref()] = p.AllocatedBefore - gone[p.ref()]
	}
	for _, n := range y.Networks {
		if n.Partial || len(used) == ledger.MaxUsed {
			continue
		}
		name := useName(n.Backend, n.Name)
		used[name] = 0
		for ref := range n.refs() {
			used[name] += allocated[ref]
		}
	}
	return used
}

// useName returns the name of a network in a ledger.Use.
func useName(backend, network string) string { return backend + " " + network }

// forecasts returns those of the networks that have room, and are known to get fuller.
func (r Report) forecasts() map[string]*Forecast {
	found, used := make(map[string]*Forecast), r.Used(nil)
	for _, n := range r.Networks {
		name := useName(n.Backend, n.Name)
		now, known := used[name]
		if known && len(n.Parts) == 0 && n.Free != nil && n.Free.Sign() > 0 && !r.Run.Undated {
			found[name] = r.forecast(name, now, n.Free)
		}
	}
	return found
}

// forecast returns the forecast of a network; nil if it is not known to get fuller, or not within a week.
func (r Report) forecast(name string, now int, free *big.Int) *Forecast {
	for _, u := range r.Uses {
		since := time.Unix(u.At, 0).UTC()
		then, known := u.Used[name]
		took := r.Run.StartedAt.Sub(since)
		if !known || took < leastSince || took > mostSince {
			continue
		}
		left := new(big.Int).Mul(free, big.NewInt(int64(took)))
		if now <= then || left.Div(left, big.NewInt(int64(now-then))).Cmp(big.NewInt(int64(mostAhead))) > 0 {
			return nil
		}
		return &Forecast{r.Run.StartedAt.Add(time.Duration(left.Int64())), since}
	}
	return nil
}
