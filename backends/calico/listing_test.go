package calico

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// oneAddress returns a block of one address with the handle.
func oneAddress(sh shape, cidr, handle string, more ...string) object {
	return sh.stored(blocks, cidr, fmt.Sprintf(`{"cidr":%q,"allocations":[0],"unallocated":[],"attributes":[{"handle_id":%q,`+
		`"secondary":{"namespace":"default","pod":"web-0","node":"node-1"}}]%s}`, cidr, handle, strings.Join(more, "")))
}

// newHandle returns a handle that counts one address in each of the blocks.
func newHandle(sh shape, id string, cidrs ...string) object {
	counts := ""
	for _, cidr := range cidrs {
		counts += fmt.Sprintf(`,%q:1`, cidr)
	}
	return sh.stored(handles, id, fmt.Sprintf(`{"handleID":%q,"block":{%s},"deleted":false}`, id, strings.TrimPrefix(counts, ",")))
}

// listingOf returns the listing of a datastore with these objects.
func listingOf(storedBlocks, storedHandles []object, nodes []node) *listing {
	l := newListing()
	l.name = resourceName
	if len(storedBlocks) > 0 && storedBlocks[0].root == "" {
		l.name = etcdKey
	}
	l.take(reduced(storedHandles, reduceHandle))
	l.take(reduced(storedBlocks, reduceBlock))
	l.takeNodes(nodes)
	return l
}

// After calico 5202: a block that is larger than Calico's is no damage. Nothing in it is listed, and
// what may have an address in it is kept. Under the name of another block, it is damage.
func TestLargeBlocks(t *testing.T) {
	const large = "fd01:0:0:f78a::/64"
	empty := func(sh shape, name string) object {
		return sh.stored(blocks, name, fmt.Sprintf(`{"cidr":%q,"affinity":"host:n-1","allocations":[],"unallocated":[],"attributes":[]}`, large))
	}
	inShapes(t, func(t *testing.T, sh shape) {
		for _, tt := range []struct {
			name       string
			unlisted   int
			damaged    int
			unreadable map[string]string // by address
		}{
			{large, 1, 0, map[string]string{
				"10.0.0.1": "", "10.0.0.2": "its sandbox may have another address in block " + large + ", which cannot be read",
				"10.0.0.3": "its handle is missing, and it may have an address in block " + large + ", which is too large",
			}},
			{"fd01:0:0:f78b::/64", 0, 1, map[string]string{
				"10.0.0.1": "", "10.0.0.2": "its sandbox may have another address in block " + large + ", which cannot be read",
				"10.0.0.3": "its handle could not be found, and block " + sh.stored(blocks, "fd01:0:0:f78b::/64", "{}").name + " could not be read",
			}},
		} {
			l := listingOf(
				[]object{oneAddress(sh, "10.0.0.1/32", "net.one"), oneAddress(sh, "10.0.0.2/32", "net.both"), oneAddress(sh, "10.0.0.3/32", "net.lost"), empty(sh, tt.name)},
				[]object{newHandle(sh, "net.one", "10.0.0.1/32"), newHandle(sh, "net.both", "10.0.0.2/32", large)}, nil)
			listed, unlisted, damaged := 0, 0, 0
			for pool, err := range l.pools {
				object, damage := (*ipam.ObjectError)(nil), (*ipam.PoolError)(nil)
				switch {
				case errors.As(err, &object) && object.Range.String() == large:
					unlisted++
				case errors.As(err, &damage):
					damaged++
				case err != nil:
					t.Error(err)
				}
				for _, a := range pool.Allocations {
					listed++
					if want := tt.unreadable[a.IP.String()]; a.Unreadable != want {
						t.Errorf("%s: %s is unreadable: %q, want %q", tt.name, a.IP, a.Unreadable, want)
					}
				}
			}
			if listed < len(tt.unreadable) || unlisted != tt.unlisted || damaged != tt.damaged {
				t.Errorf("%s: %d addresses, %d large and %d damaged blocks, want at least %d, and %d and %d",
					tt.name, listed, unlisted, damaged, len(tt.unreadable), tt.unlisted, tt.damaged)
			}
		}
	})
}

func TestEmptyHandles(t *testing.T) {
	hex := sandbox(10)
	deleted := func(o object) object {
		o.raw = []byte(strings.Replace(string(o.raw), `"deleted":false`, `"deleted":true`, 1))
		return o
	}
	inShapes(t, func(t *testing.T, sh shape) {
		l := listingOf(
			[]object{oneAddress(sh, "10.0.0.1/32", "net.used"), oneAddress(sh, "10.0.0.2/32", `net.moved`+"\r\neth0"), oneAddress(sh, "10.0.0.3/32", "my.net."+hex)},
			[]object{
				newHandle(sh, "net.used", "10.0.0.1/32"), newHandle(sh, "net.moved", "10.0.0.2/32"), newHandle(sh, "my.net."+hex),
				newHandle(sh, "my.net."+sandbox(11), "10.0.0.1/32"), newHandle(sh, "my.net.ctr1"), newHandle(sh, "default.web-0", "10.9.0.0/26"),
				newHandle(sh, "by-hand"), newHandle(sh, "ipip-tunnel-addr-node-1"), newHandle(sh, "lb-n4bQgYhMfWWaLqgxVrQFaO"),
				deleted(newHandle(sh, "my.net."+sandbox(12))),
			}, nil)
		token := func(id string) string {
			if sh.name == "etcd" {
				return "/7"
			}
			return "uid-" + id + "/7"
		}
		want := ipam.Pool{Name: "handles", Allocations: []ipam.Allocation{
			{Key: "my.net." + sandbox(11), Owner: ipam.Owner{Sandbox: sandbox(11)}},
			{Key: "my.net.ctr1"},
			{Key: "default.web-0"},
			{Key: "by-hand"},
			{Key: "ipip-tunnel-addr-node-1", Foreign: "a tunnel"},
			{Key: "lb-n4bQgYhMfWWaLqgxVrQFaO", Foreign: "a service"},
		}}
		for i := range want.Allocations {
			r := &want.Allocations[i]
			r.EmptyHandle, r.Adoption = true, ipam.NeverAdopted
			r.Token = token(strings.ToLower(r.Key))
		}
		if diff := cmp.Diff(want, l.emptyHandles(), cmpopts.EquateComparable(ipam.Allocation{}, ipam.Pool{}.Range)); diff != "" {
			t.Errorf("empty handles (-want +got):\n%s", diff)
		}
	})
}

// Promise 7. A handle that is not gone yet is listed as what it is.
func TestEmptyHandleThatFinalizersKeep(t *testing.T) {
	o, err := readObject(handles, []byte(`{"metadata":{"name":"net.a","deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["example.com/hold"]},
		"spec":{"handleID":"net.a","block":{"10.0.0.0/26":1}}}`))
	if err != nil {
		t.Fatal(err)
	}
	l := newListing()
	l.take([]any{reduceHandle(o)})
	const want = "it is being deleted, and waits for the finalizers example.com/hold"
	if got := l.emptyHandles().Allocations[0].Deleting; got != want {
		t.Errorf("it is listed as %q, want %s", got, want)
	}
}

func TestEmptyHandlesTellTheirAge(t *testing.T) {
	o, err := readObject(handles, []byte(`{"metadata":{"name":"net.a","uid":"u","resourceVersion":"7","creationTimestamp":"2026-03-01T12:00:00Z"},`+
		`"spec":{"handleID":"net.A","block":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r := listingOf(nil, []object{o}, nil).emptyHandles().Allocations[0]
	if want := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC); !r.Created.Equal(want) || r.Key != "net.A" || r.Token != "u/7" {
		t.Errorf("listed as %+v, want its ID, and its age since %v", r, want)
	}
}

// unreadable reports whether each address and empty handle of a listing is held
// as unreadable.
func unreadable(l *listing) map[string]bool {
	held := make(map[string]bool)
	for _, b := range l.blocks {
		for _, r := range l.finish(b).Allocations {
			held[r.IP.String()] = r.Unreadable != ""
		}
	}
	for _, r := range l.emptyHandles().Allocations {
		held[r.Key] = r.Unreadable != ""
	}
	return held
}

// All addresses of a sandbox are kept or released together. So if one of them may
// be in a block that cannot be read, the others are unreadable too.
func TestUnreadableObjectsHoldTheirSandboxes(t *testing.T) {
	const first, second, other = "10.0.0.1/32", "10.0.0.2/32", "fd00::/122"
	inShapes(t, func(t *testing.T, sh shape) {
		two := []object{oneAddress(sh, first, "net.a"), oneAddress(sh, second, "net.b")}
		broken := sh.stored(blocks, other, `{"cidr":"fd00::/122"}`)
		for _, tt := range []struct {
			name    string
			blocks  []object
			handles []object
			want    map[string]bool
		}{
			{"all is well", two, []object{newHandle(sh, "net.a", first), newHandle(sh, "net.b", second), newHandle(sh, "net.c", first)},
				map[string]bool{"10.0.0.1": false, "10.0.0.2": false, "net.c": false}},
			{"a handle counts in a block that is gone", two, []object{newHandle(sh, "net.a", first, other), newHandle(sh, "net.c", other)},
				map[string]bool{"10.0.0.1": false, "10.0.0.2": false, "net.c": false}},
			{"a block is broken", append(two, broken), []object{newHandle(sh, "net.a", first, other), newHandle(sh, "net.b", second), newHandle(sh, "net.c", other), newHandle(sh, "net.d")},
				map[string]bool{"10.0.0.1": true, "10.0.0.2": false, "net.c": true, "net.d": false}},
			{"a block is broken, and handles are missing", append(two, broken), []object{newHandle(sh, "net.b", second)},
				map[string]bool{"10.0.0.1": true, "10.0.0.2": false}},
			{"a handle is broken", two, []object{sh.stored(handles, "net.a", `{"handleID":"net.a","block":7}`), newHandle(sh, "net.b", second)},
				map[string]bool{"10.0.0.1": true, "10.0.0.2": false}},
			{"Calico is deleting a block", []object{oneAddress(sh, first, "net.a", `,"deleted":true`), two[1]}, nil,
				map[string]bool{"10.0.0.1": true, "10.0.0.2": false}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				l := listingOf(tt.blocks, tt.handles, nil)
				if diff := cmp.Diff(tt.want, unreadable(l)); diff != "" {
					t.Errorf("unreadable (-want +got):\n%s", diff)
				}
				if want := strings.Contains(tt.name, "broken"); (len(l.broken) == 1) != want {
					t.Errorf("broken are %v", l.broken)
				}
			})
		}
	})
}

// A block that is stored under the name of another is left out.
func TestMisplacedBlocks(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		l := listingOf(
			[]object{oneAddress(sh, "10.0.0.1/32", "net.a"), oneAddress(sh, "10.0.0.2/32", "net.b"), sh.stored(blocks, "10.0.0.4/32", strings.Replace(
				string(oneAddress(sh, "10.0.0.3/32", "net.a").value()), "default", "kube-system", 1))},
			[]object{newHandle(sh, "net.a", "10.0.0.1/32", "10.0.0.3/32"), newHandle(sh, "net.b", "10.0.0.2/32")}, nil)
		if len(l.broken) != 1 || !strings.Contains(l.broken[0].Error(), "its cidr is 10.0.0.3/32") {
			t.Errorf("broken are %v", l.broken)
		}
		if diff := cmp.Diff(map[string]bool{"10.0.0.1": true, "10.0.0.2": false}, unreadable(l)); diff != "" {
			t.Errorf("unreadable (-want +got):\n%s", diff)
		}
	})
}

func TestListReadsHandlesBeforeBlocks(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		s := newFixture(t, sh)
		s.leak(1)
		s.emptyHandle()
		s.put(blocks, "10.9.0.0/26", `{"cidr":"10.9.0.0/26"}`)
		s.put(blocks, "10.8.0.0/26", strings.Replace(threeOfFour, "10.0.0.0/30", "10.7.0.0/30", 1))
		s.onRequest(nil)
		var got []string
		for pool, err := range s.backend.List(t.Context()) {
			var broken *ipam.PoolError
			if errors.As(err, &broken) {
				got = append(got, broken.Pool)
			} else {
				got = append(got, fmt.Sprint(pool.Name, " ", len(pool.Allocations), " ", pool.Capacity, " ", err))
			}
		}
		want := []string{"block 10-8-0-0-26", "block 10-9-0-0-26", "10.0.0.0/26 1 64 <nil>"}
		if sh.name == "etcd" {
			want[0], want[1] = "block /calico/ipam/v2/assignment/ipv4/block/10.8.0.0-26", "block /calico/ipam/v2/assignment/ipv4/block/10.9.0.0-26"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
		requests := s.requests()
		slices.Sort(requests[:3]) // at the same time
		if diff := cmp.Diff([]string{"list handles", "ready", "settings", "list blocks", "nodes", "ipreservations"}, requests); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		for range s.backend.List(t.Context()) { //nolint:errcheck // the loop ends after the first pool
			break
		}
	})
}

// A listing that fails returns one error and no pool.
func TestListFails(t *testing.T) {
	for _, request := range []string{"ready", "list handles", "list blocks", "nodes"} {
		s := newFixture(t, shapes[0])
		s.leak(1)
		s.always(request, errRefused)
		n := 0
		for pool, err := range s.backend.List(t.Context()) {
			if n++; !errors.Is(err, errRefused) || pool.Name != "" || errors.Is(err, ipam.ErrNotInstalled) {
				t.Errorf("with %q refused, List yields %+v, %v", request, pool, err)
			}
		}
		if n != 1 {
			t.Errorf("with %q refused, List yields %d times, want once", request, n)
		}
	}
}

// Calico before 3.22 has no IPReservations. If IPPools cannot be read, the survey fails but not
// the listing (promise 9).
func TestListWithoutIPReservationsAndIPPools(t *testing.T) {
	block := items(string(shapes[0].stored(blocks, "10.0.0.0/30", threeOfFour).raw))
	_, b := newAPI(t, with(v1, "GET crd.projectcalico.org/v1/ipamblocks", block, "GET crd.projectcalico.org/v1/ipamhandles", items()))
	listed := 0
	for pool, err := range b.List(t.Context()) {
		listed++
		if err != nil || len(pool.Allocations) != 3 {
			t.Errorf("List = %+v, %v", pool, err)
		}
	}
	if listed != 1 {
		t.Errorf("%d blocks were listed, want 1", listed)
	}
	if _, err := b.Survey(t.Context(), nil); err == nil || err.Error() != "list Calico's IPPools: ippools.crd.projectcalico.org is not defined" {
		t.Errorf("Survey: %v, want why it failed", err)
	}
}
