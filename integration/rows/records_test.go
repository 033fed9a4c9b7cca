package rows_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/generated/clientset/versioned"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/whereabouts"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// recorders are the backends in the order in which they restore: a allocation
// that is back keeps other ranges from the address of the entry that follows.
func (s *scene) recorders(config *rest.Config) []reaper.Recorder {
	s.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	clients, err := versioned.NewForConfig(config)
	s.must(err)
	client := clients.WhereaboutsV1alpha1().RESTClient()
	return []reaper.Recorder{whereabouts.NewOverlapping(client), whereabouts.NewPools(client)}
}

// records are what Record returns of all that is listed, in the form that the
// journal gives it.
func (s *scene) records() []reaper.Record {
	s.Helper()
	var all []reaper.Record
	for _, b := range s.recorders(s.cluster.Config) {
		for pool, err := range b.List(s.Context()) {
			s.must(err)
			for i := range pool.Allocations {
				pool.Allocations[i].Pool = pool.Name
			}
			stored, err := b.Record(s.Context(), pool.Allocations)
			s.must(err)
			for i, r := range pool.Allocations {
				if stored[i] == nil {
					s.Fatalf("there is no record of %s %s", pool.Name, r.Key)
				}
				all = append(all, reaper.Record{Backend: b.Name(), Pool: pool.Name, Key: r.Key, IP: r.IP.String(), Stored: stored[i]})
			}
		}
	}
	data, err := json.Marshal(all)
	s.must(err)
	var journal []reaper.Record
	s.must(json.Unmarshal(data, &journal))
	return journal
}

// restore puts the records back and returns a line for each: what it is of, and
// what was answered.
func (s *scene) restore(config *rest.Config, records []reaper.Record) []string {
	s.Helper()
	var lines []string
	for _, b := range s.recorders(config) {
		pools := map[string][]reaper.Record{}
		for _, r := range records {
			if r.Backend == b.Name() {
				pools[r.Pool] = append(pools[r.Pool], r)
			}
		}
		for pool, rs := range pools {
			for i, err := range b.Restore(s.Context(), pool, rs) {
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

// answer is what Restore answered, in a few words.
func answer(err error) string {
	switch {
	case err == nil:
		return "back"
	case errors.Is(err, reaper.ErrPresent):
		return "present"
	default:
		return err.Error()
	}
}

// births are what tells a restored object from the one before.
var births = regexp.MustCompile(`"(uid|creationTimestamp)":"[^"]*",?`)

// reborn is the store without its versions, and without the births of objects.
func (st store) reborn() store {
	content := map[string]string{}
	for name, text := range st.content {
		content[name] = births.ReplaceAllString(text, "")
	}
	return store{content: content}
}

// wantReborn fails the test unless the store is as it was, but for the births of
// objects.
func (s *scene) wantReborn(want store) {
	s.Helper()
	s.wantLines(lines(want.reborn()), lines(s.store().reborn()))
}

// lines is the store with a line for each of its parts.
func lines(st store) []string {
	var all []string
	for name, text := range st.content {
		all = append(all, name+" "+text)
	}
	slices.Sort(all)
	return all
}

// release runs the reaper, which has to release everything that is in the
// records but what is in lines.
func (s *scene) release(records []reaper.Record, kept int) {
	s.Helper()
	got := s.reap("limits: {maxFraction: 1}\n")
	if n := count(got.lines, "released"); n != len(records)-kept {
		s.Fatalf("%d released, want %d\n%s\n%s", n, len(records)-kept, strings.Join(got.lines, "\n"), got.stderr)
	}
}

// between is a proxy for a client of the test.
func (s *scene) between() *proxy.Proxy {
	s.Helper()
	p, err := proxy.Start(s.cluster.Config)
	s.must(err)
	s.Cleanup(p.Stop)
	return p
}

// pools are the records of pools.
func poolRecords(records []reaper.Record) []reaper.Record {
	return slices.DeleteFunc(slices.Clone(records), func(r reaper.Record) bool { return r.Backend != whereabouts.PoolsName })
}
