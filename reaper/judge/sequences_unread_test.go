package judge_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// A partStore is a store of which some pools, or all, cannot be read.
type partStore struct {
	namedStore
	unread map[string]bool
	fails  bool
}

func (s *partStore) List(context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		if s.fails {
			yield(ipam.Pool{}, errors.New("no"))
			return
		}
		for _, pool := range s.fixedStore {
			var err error
			if s.unread[pool.Name] {
				pool, err = ipam.Pool{}, &ipam.PoolError{Pool: pool.Name, Err: errors.New("no")}
			}
			if !yield(pool, err) {
				return
			}
		}
	}
}

// Promise 1. The sandbox of a pod hangs on a node, and runs on after the pod was deleted by force.
// Which sequence of unreadable pools and stores, runs that are killed, refused, or run beside a
// restore, and restores makes its address due? An older program reads no ledger of this one, so it
// changes nothing.
func TestNoSequenceMakesAnAddressOfAHungPodDue(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		entry, reservation := webAllocation(), webAllocation()
		entry.Owner.Sandbox, reservation.Owner.Sandbox, reservation.Token = "s1", "s1", "r"
		in := func(name string, as ...ipam.Allocation) ipam.Pool {
			return ipam.Pool{Name: name, Allocations: as}
		}
		entries := &partStore{namedStore: namedStore{name: "whereabouts"}, unread: make(map[string]bool)}
		reservations := &partStore{namedStore: namedStore{name: "overlapping"}, unread: make(map[string]bool)}
		fill := func(there bool) {
			entries.fixedStore = fixedStore{in("a"), in("b")}
			if there {
				entries.fixedStore = fixedStore{in("a", entry), in("b")}
			}
			reservations.fixedStore = fixedStore{in("r", reservation), in("q")}
		}
		fill(true)
		w := newSequence(entries, reservations)
		w.cluster([]census.Pod{hanging()}, booted("b1"))
		w.run(t)
		w.cluster(nil, booted("b1"))
		var did []string
		step := func(what string) { did = append(did, what) }
		restore := func() {
			record := ipam.Allocation{Backend: "whereabouts", Pool: "a", Key: entry.Key, IP: entry.IP, Owner: entry.Owner}
			w.ledger = w.ledger.WithRestored(maps.All(map[*ipam.Allocation]ledger.Place{&record: {Node: "n1", Boot: "b1"}}), w.now)
		}
		for range 25 {
			w.now = w.now.Add(time.Duration(random.IntN(20)) * time.Hour)
			before := w.ledger
			switch random.IntN(14) {
			case 0:
				step("a pool breaks, or is mended")
				pool := []string{"a", "b"}[random.IntN(2)]
				entries.unread[pool] = !entries.unread[pool]
				continue
			case 1:
				step("a reservation breaks, or is mended")
				pool := []string{"r", "q"}[random.IntN(2)]
				reservations.unread[pool] = !reservations.unread[pool]
				continue
			case 2:
				step("a store fails, or is back")
				store := []*partStore{entries, reservations}[random.IntN(2)]
				store.fails = !store.fails
				continue
			case 3:
				step("the run is killed before it saves")
				w.run(t)
				w.ledger = before
				continue
			case 4:
				step("the run is refused")
				inv := inventory(t, w.backends...)
				c := w.lists.Census(t, census.Scope{StatefulSets: true, Nodes: true})
				w.ledger = judge.WithHung(before, judge.Verdicts{Decisions: judge.Judge(w.now, w.policy, inv, c, before)})
				continue
			case 5:
				step("the entry is deleted by hand, and restored during a run")
				fill(false)
				restore()
				w.run(t)
				entry.Token += "'"
				fill(true)
			case 6:
				step("the entry is deleted by hand, and restored after a run")
				fill(false)
				w.run(t)
				restore()
				entry.Token += "'"
				fill(true)
			default:
				step("a run")
			}
			for _, d := range w.run(t) {
				kept(t, fmt.Sprintf("seed %d: %s: %s", seed, strings.Join(did, ", "), d.Allocation.Backend), d)
			}
		}
		if n := w.ledger.Len(); n > 8 {
			t.Errorf("seed %d: the ledger has %d entries after %s", seed, n, strings.Join(did, ", "))
		}
	}
}
