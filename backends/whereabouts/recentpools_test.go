package whereabouts

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// storedPools answers lists of IPPools as the API server does: with the metadata alone if the
// client asks for that, and with the pools of one name if it asks for those.
type storedPools struct {
	mu       sync.Mutex
	versions map[string]int // by name: the resourceVersion, which is in the spec too
	sent     int            // pools whose spec was sent
}

func (s *storedPools) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	brief := strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList")
	only, one := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.versions)) {
		switch {
		case one && name != only:
		case brief:
			all = append(all, fmt.Sprintf(`{"kind": "PartialObjectMetadata", "metadata": {"namespace": "a", "name": %q, "resourceVersion": "%d"}}`, name, s.versions[name]))
		default:
			s.sent++
			all = append(all, s.pool(name))
		}
	}
	items(all...)(w, r)
}

// pool returns a pool as it is stored.
func (s *storedPools) pool(name string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "metadata": {"namespace": "a", "name": %q, "resourceVersion": "%d"}, "spec": {"range": "%d"}}`,
		name, s.versions[name], s.versions[name])
}

// over returns a backend over the pools.
func (s *storedPools) over(t *testing.T) *Overlapping {
	_, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": s.ServeHTTP, "GET namespaces/a/ippools": s.ServeHTTP})
	return NewOverlapping(client)
}

// specs returns the specs of pools by their names.
func specs(t rapid.TB, items []json.RawMessage) map[string]string {
	all := make(map[string]string)
	for _, item := range items {
		var pool struct {
			Metadata struct{ Name string }
			Spec     struct{ Range string }
		}
		if err := json.Unmarshal(item, &pool); err != nil {
			t.Fatal(err)
		}
		if pool.Metadata.Name != "" {
			all[pool.Metadata.Name] = pool.Spec.Range
		}
	}
	return all
}

// Promise 4. However the pools change from one reading to the next, the second one has them
// as they are then.
func TestPoolsReadAgainAreTheStoredOnes(t *testing.T) {
	s := &storedPools{}
	b := s.over(t)
	rapid.Check(t, func(t *rapid.T) {
		s.versions = map[string]int{}
		b.forget()
		for version := 1; version < 6; version++ {
			for n := range 8 {
				switch name := fmt.Sprint("pool-", n); rapid.SampledFrom([]string{"stays", "stays", "changes", "goes"}).Draw(t, name) {
				case "changes":
					s.versions[name] = version*100 + n
				case "goes":
					delete(s.versions, name)
				}
			}
			read, err := b.poolsSince(t.Context(), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			want := make(map[string]string)
			for name, version := range s.versions {
				want[name] = fmt.Sprint(version)
			}
			if diff := cmp.Diff(want, specs(t, read)); diff != "" {
				t.Fatalf("pools (-stored +read):\n%s", diff)
			}
		}
	})
}

func TestPoolThatHasNotChangedIsNotReadAgain(t *testing.T) {
	s := &storedPools{versions: map[string]int{}}
	for n := range 20 {
		s.versions[fmt.Sprint("pool-", n)] = n + 1
	}
	b := s.over(t)
	for _, step := range []struct {
		name   string
		change func()
		sent   int
	}{
		{"first", func() {}, 20},
		{"nothing", func() {}, 0},
		{"one changes", func() { s.versions["pool-3"] = 100 }, 1},
		{"one is new", func() { s.versions["pool-20"] = 101 }, 1},
		{"one goes", func() { delete(s.versions, "pool-4") }, 0},
		{"one comes back", func() { s.versions["pool-4"] = 102 }, 1},
		{"most change", func() {
			for n := range 15 {
				s.versions[fmt.Sprint("pool-", n)] = 200 + n
			}
		}, 21},
	} {
		step.change()
		s.sent = 0
		if _, err := b.poolsSince(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		if s.sent != step.sent {
			t.Errorf("%s: %d pools were sent, want %d", step.name, s.sent, step.sent)
		}
	}
}

// A pool that goes between the list of the versions and its reading holds nothing.
func TestPoolThatIsGoneWhenItIsReadAgainHoldsNothing(t *testing.T) {
	s := &storedPools{versions: map[string]int{"pool-1": 1, "pool-2": 2, "pool-3": 3}}
	a, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": s.ServeHTTP, "GET namespaces/a/ippools": items()})
	b := NewOverlapping(client)
	for range 2 {
		read, err := b.poolsSince(t.Context(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"pool-1": "1", "pool-2": "2", "pool-3": "3"}
		if s.versions["pool-2"] == 4 {
			delete(want, "pool-2")
		}
		if diff := cmp.Diff(want, specs(t, read)); diff != "" {
			t.Errorf("pools (-want +got):\n%s", diff)
		}
		s.versions["pool-2"] = 4
	}
	if n := len(a.bodies("GET namespaces/a/ippools")); n != 1 {
		t.Errorf("%d single pools were read, want 1", n)
	}
}

func TestVersionOfAPool(t *testing.T) {
	for document, want := range map[string]version{
		`{"apiVersion": "v1", "kind": "IPPool", "metadata": {"namespace": "a", "name": "b", "resourceVersion": "7"}, "spec": {`: {"a/b", "7"},
		`{"spec": {"metadata": {"name": "no"}}, "metadata": {"namespace": "a", "name": "b", "resourceVersion": "7"}}`:           {"a/b", "7"},
		`{"spec": {}}`:       {},
		`{"metadata": "no"}`: {},
		`{"spec": {`:         {},
		`["metadata"]`:       {},
		`{}`:                 {},
		``:                   {},
	} {
		if got := readVersion(json.RawMessage(document)); got != want {
			t.Errorf("readVersion(%s) = %v, want %v", document, got, want)
		}
	}
}
