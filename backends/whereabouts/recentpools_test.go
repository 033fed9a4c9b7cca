package whereabouts

import (
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

// storedPools answers lists of IPPools as the API server does: with only the metadata if the
// client asks for that.
type storedPools struct {
	mu       sync.Mutex
	versions map[string]int // by name: the resourceVersion, also encoded in the spec
	sent     int            // pools whose spec was sent
}

func (s *storedPools) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	brief := strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList")
	only := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.versions)) {
		switch {
		case only != "" && name != only:
		case brief:
			all = append(all, fmt.Sprintf(`{"kind": "PartialObjectMetadata", "metadata": {"namespace": "a", "name": %q, "resourceVersion": "%d"}}`, name, s.versions[name]))
		default:
			s.sent++
			all = append(all, s.pool(name))
		}
	}
	items(all...)(w, r)
}

// pool returns a pool as stored.
func (s *storedPools) pool(name string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "metadata": {"namespace": "a", "name": %q, "resourceVersion": "%d"}, "spec": {"range": "10.%d.0.0/16"}}`,
		name, s.versions[name], s.versions[name])
}

// over returns a backend over the pools.
func (s *storedPools) over(t *testing.T) *Overlapping {
	_, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": s.ServeHTTP, "GET namespaces/a/ippools": s.ServeHTTP})
	return NewOverlapping(client, Settings{}, atOnce)
}

// specs returns the ranges of pools by name.
func specs(pools []holder) map[string]string {
	all := make(map[string]string)
	for _, p := range pools {
		all[p.name] = p.prefix.String()
	}
	return all
}

// Promise 4. No matter how the pools change between two readings, the second one has them as
// they are then. If few have changed, no others are sent again.
func TestPoolsReadAgainAreTheStoredOnes(t *testing.T) {
	s := &storedPools{}
	b := s.over(t)
	rapid.Check(t, func(t *rapid.T) {
		s.versions = map[string]int{}
		b.forget()
		for version := 1; version < 6; version++ {
			changed := 0
			for n := range 8 {
				name := fmt.Sprint("pool-", n)
				switch rapid.SampledFrom([]string{"stays", "stays", "stays", "stays", "changes", "goes"}).Draw(t, name) {
				case "changes":
					s.versions[name] = version*10 + n
					changed++
				case "goes":
					delete(s.versions, name)
				}
			}
			s.sent = 0
			before := len(b.pools)
			read, err := b.poolsSince(t.Context(), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			want := make(map[string]string)
			for name, version := range s.versions {
				want[name] = fmt.Sprintf("10.%d.0.0/16", version)
			}
			if diff := cmp.Diff(want, specs(read)); diff != "" {
				t.Fatalf("pools (-stored +read):\n%s", diff)
			}
			if version > 1 && len(want) > 0 && 4*changed <= len(want) && s.sent > changed && before > 0 {
				t.Fatalf("%d pools were sent again, and %d have changed", s.sent, changed)
			}
		}
	})
}

// Promise 2. An IPPool whose metadata cannot be decoded is in every reading.
func TestPoolWithoutAVersionIsReadAgain(t *testing.T) {
	_, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": items(`{"metadata": "no"}`)})
	b := NewOverlapping(client, Settings{}, atOnce)
	for range 2 {
		read, err := b.poolsSince(t.Context(), time.Now())
		if err != nil || len(read) != 1 || read[0].undecoded == nil {
			t.Errorf("poolsSince = %v, %v, want the pool as it is stored", read, err)
		}
	}
}
