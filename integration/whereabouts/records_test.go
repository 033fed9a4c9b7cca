package whereabouts_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/generated/clientset/versioned"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/backends/whereabouts"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// recorders returns the backends in the order in which they restore: a restored reservation keeps
// other ranges from the address of the entry that follows.
func (f *fixture) recorders(config *rest.Config) []ipam.Backend {
	f.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	clients, err := versioned.NewForConfig(config)
	f.must(err)
	client := clients.WhereaboutsV1alpha1().RESTClient()
	return []ipam.Backend{whereabouts.NewOverlapping(client, whereabouts.Settings{}, 32), whereabouts.NewPools(client, whereabouts.Settings{}, 32)}
}

// records returns the records of everything listed, in the journal's form.
func (f *fixture) records() []ipam.Record {
	f.Helper()
	var all []ipam.Record
	for _, b := range f.recorders(f.Config) {
		for pool, err := range b.List(f.Context()) {
			f.must(err)
			for i := range pool.Allocations {
				pool.Allocations[i].Pool = pool.Name
			}
			stored, err := b.Record(f.Context(), pool.Allocations)
			f.must(err)
			for i, r := range pool.Allocations {
				if stored[i] == nil {
					f.Fatalf("there is no record of %s %s", pool.Name, r.Key)
				}
				all = append(all, ipam.Record{Backend: b.Name(), Pool: pool.Name, Key: r.Key, IP: r.IP.String(), Stored: stored[i]})
			}
		}
	}
	data, err := json.Marshal(all)
	f.must(err)
	var journal []ipam.Record
	f.must(json.Unmarshal(data, &journal))
	return journal
}

// restore lists the stores and puts the records back. It returns a line for each: its name
// and the answer.
func (f *fixture) restore(config *rest.Config, records []ipam.Record) []string {
	f.Helper()
	var lines []string
	for _, b := range f.recorders(config) {
		for _, err := range b.List(f.Context()) {
			f.must(err)
		}
		pools := map[string][]ipam.Record{}
		for _, r := range records {
			if r.Backend == b.Name() {
				pools[r.Pool] = append(pools[r.Pool], r)
			}
		}
		for pool, rs := range pools {
			for i, err := range b.Restore(f.Context(), pool, rs, backendtest.Permit) {
				if errors.Is(err, ipam.ErrAgain) { // a run also tries again
					err = b.Restore(f.Context(), pool, rs[i:i+1], backendtest.Permit)[0]
				}
				name := strings.TrimPrefix(pool, cluster.PoolNamespace+"/")
				if b.Name() == whereabouts.PoolsName {
					name += "/" + rs[i].Key
				}
				lines = append(lines, name+" "+answer(err))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// answer returns Restore's answer in a few words.
func answer(err error) string {
	switch {
	case err == nil:
		return "back"
	case errors.Is(err, ipam.ErrPresent):
		return "present"
	default:
		return err.Error()
	}
}

// release runs the reaper, which must release everything.
func (f *fixture) release() {
	f.Helper()
	lines := f.mustReap(reap.ExitDone, noLimit).lines
	if len(lines) == 0 {
		f.Fatal("there is nothing to release")
	}
	for _, line := range lines {
		if !strings.HasSuffix(line, " released") {
			f.Fatalf("%s, want it released", line)
		}
	}
}
