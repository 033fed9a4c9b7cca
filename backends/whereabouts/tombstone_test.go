package whereabouts

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

const (
	tombstoneBody = `{"metadata":{"annotations":{"ip-reaper/spec":"{\"podref\":\"default/web-0\"}"},"resourceVersion":"44","uid":"u4"},` +
		`"spec":{"podref":"_ip-reaper/_released"}}`
	restoreBody = `[{"op":"replace","path":"/metadata/uid","value":"u4"},{"op":"replace","path":"/metadata/resourceVersion","value":"45"},` +
		`{"op":"replace","path":"/spec","value":{"podref":"default/web-0"}},{"op":"remove","path":"/metadata/annotations/ip-reaper~1spec"}]`
	deleteBody = `{"preconditions":{"uid":"u4","resourceVersion":"45"}}`
	patchAt    = "PATCH " + overlappingAt
	getAt      = "GET " + overlappingAt
	deleteAt   = "DELETE " + overlappingAt
)

var (
	leaked               = overlappingJSON("10.0.0.4", `{"podref":"default/web-0"}`, `{}`)
	withTombstone        = tombstoneOf("default/web-0")
	overlappingNotFound  = refuse(apierrors.NewNotFound(overlappingResources, "10.0.0.4"))
	overlappingConflict  = refuse(apierrors.NewConflict(overlappingResources, "10.0.0.4", errors.New("the object has been modified")))
	overlappingForbidden = refuse(apierrors.NewForbidden(overlappingResources, "10.0.0.4", errors.New("no")))
	broken               = refuse(apierrors.NewInternalError(errors.New("etcd is gone")))
)

// tombstoneOf is the overlapping reservation of an owner with a tombstone.
func tombstoneOf(owner string) string {
	return `{"metadata": {"namespace": "kube-system", "name": "10.0.0.4", "uid": "u4", "resourceVersion": "45",
		"annotations": {"ip-reaper/spec": "{\"podref\":\"` + owner + `\"}"}}, "spec": {"podref": "_ip-reaper/_released"}}`
}

// beingDeleted returns an object as the API server answers with it if finalizers keep it.
func beingDeleted(object string) string {
	return strings.Replace(object, `"uid"`, `"deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": ["example.com/hold"], "uid"`, 1)
}

// at returns the path of an overlapping reservation.
func at(name string) string {
	return "namespaces/kube-system/overlappingrangeipreservations/" + name
}

// leakyOverlapping starts a server with leaked overlapping reservations. It returns the backend and
// a warrant for each. A request that the test has no answer for succeeds. A cluster of nil is empty.
func leakyOverlapping(t *testing.T, cluster *backendtest.Pods, answers map[string]http.HandlerFunc, stored ...string) (*api, *Overlapping, []ipam.Warrant) {
	t.Helper()
	all := map[string]http.HandlerFunc{"GET overlappingrangeipreservations": items(stored...), "GET ippools": items()}
	var rs []ipam.Allocation
	for _, one := range stored {
		pool := readReservation(json.RawMessage(one)).Pool
		r := pool.Allocations[0]
		r.Pool = pool.Name
		rs = append(rs, r)
		all["PATCH "+at(r.Key)] = say(strings.NewReplacer("10.0.0.4", r.Key, "web-0", r.Owner.Pod.Name).Replace(withTombstone))
		all["DELETE "+at(r.Key)] = say(`{"kind": "Status", "apiVersion": "v1", "status": "Success"}`)
	}
	a, client := newAPI(t, all)
	b := NewOverlapping(client, Settings{UnknownFields: IgnoreUnknownFields}, 4)
	if cluster == nil {
		cluster = new(backendtest.Pods)
	}
	ws := backendtest.Warrants(t, b, cluster, rs...)
	for call, with := range answers {
		a.answer(call, with)
	}
	a.answer("", nil) // forgets the listing
	return a, b, ws
}

// comesBack is a cluster whose pod is absent for that many looks, and then exists. After as many
// looks, those at the lost pod fail.
func comesBack(pod string, looks int, lost ...string) *backendtest.Pods {
	cluster := new(backendtest.Pods)
	var mu sync.Mutex // looks come from several goroutines
	looked := make(map[string]int)
	cluster.OnCall(func(call string) error {
		name := strings.TrimPrefix(call, "get pod default/")
		mu.Lock()
		defer mu.Unlock()
		looked[name]++
		switch again := looked[name] > looks; {
		case again && name == pod:
			cluster.Add(census.Pod{Ref: ipam.PodRef{Namespace: "default", Name: pod}})
		case again && slices.Contains(lost, name):
			return errors.New("timeout")
		}
		return nil
	})
	return cluster
}

func TestOverlappingGetsATombstoneAndIsDeleted(t *testing.T) {
	a, b, ws := leakyOverlapping(t, nil, nil, leaked)
	if got := outcomes(b.Release(t.Context(), ws)); got != "gone" {
		t.Errorf("Release = %s, want gone", got)
	}
	if diff := cmp.Diff([]string{"GET ippools", patchAt, "GET ippools", deleteAt}, a.calls()); diff != "" {
		t.Fatalf("requests (-want +got):\n%s", diff)
	}
	patch := a.bodies(patchAt)[0]
	if diff := cmp.Diff(tombstoneBody, patch.Body); diff != "" || patch.Type != "application/merge-patch+json" {
		t.Errorf("%s patch (-want +got):\n%s", patch.Type, diff)
	}
	if diff := cmp.Diff(deleteBody, a.bodies(deleteAt)[0].Body); diff != "" {
		t.Errorf("deletion (-want +got):\n%s", diff)
	}
}

func TestReturningOwnerIsPutBack(t *testing.T) {
	for _, tt := range []struct {
		name    string
		restore http.HandlerFunc
		want    string
	}{
		{"restored", say(leaked), "returned"},
		{"gone meanwhile", overlappingNotFound, "returned"},
		{"written meanwhile", overlappingConflict, "again"},
		{"server broken", broken, "again"},
		{"forbidden", overlappingForbidden, "final"},
		{"a proxy knows no such path", plain(http.StatusNotFound), "final"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b, ws := leakyOverlapping(t, comesBack("web-0", 1), map[string]http.HandlerFunc{patchAt: first(say(withTombstone), tt.restore)}, leaked)
			if got := outcomes(b.Release(t.Context(), ws)); got != tt.want {
				t.Errorf("Release = %s, want %s", got, tt.want)
			}
			if diff := cmp.Diff([]string{"GET ippools", patchAt, "GET ippools", patchAt}, a.calls()); diff != "" {
				t.Fatalf("requests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(restoreBody, a.bodies(patchAt)[1].Body); diff != "" {
				t.Errorf("patch that puts the owner back (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverlappingWaitsForItsPoolEntry(t *testing.T) {
	entry := func(key, podRef string) http.HandlerFunc {
		return items(`{"metadata": {"namespace": "other", "name": "10.0.0.0-24"},
			"spec": {"range": "10.0.0.0/24", "allocations": {"` + key + `": {"id": "c", "podref": "` + podRef + `"}}}}`)
	}
	for _, tt := range []struct {
		name   string
		pools  http.HandlerFunc
		want   string
		writes bool
	}{
		{"held for the same pod", entry("4", "default/web-0"), "kept", false},
		{"held for another pod", entry("4", "default/web-1"), "gone", true},
		{"no pools", items(), "gone", true},
		{"a pool that cannot be decoded names the pod",
			items(`{"spec": {"range": "?", "allocations": {"4": {"podref": "default/web-0"}}}}`), "kept", false},
		{"a pool that cannot be decoded names pods with longer names",
			items(`{"spec": {"range": "?", "allocations": {"4": {"podref": "default/web-01"}, "5": {"podref": "my-default/web-0"}, "6": {"podref": "default/web-0.x"}}}}`), "gone", true},
		{"a pool that cannot be decoded was applied with kubectl",
			items(`{"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"kind\":\"IPPool\"}\n"}}, "spec": {"range": "?"}}`), "gone", true},
		{"a pool that cannot be decoded names the pod in a text of another form",
			items(`{"metadata": {"annotations": {"note": "{\"podref\":\"default/web-0\"}"}}, "spec": {"range": "?"}}`), "kept", false},
		{"a pool that cannot be decoded names the pod in another spelling",
			items(`{"spec": {"range": "?", "allocations": {"4": {"podref": "default\/web-\u0030"}}}}`), "kept", false},
		{"a pool that cannot be decoded has a text in a text in a text",
			items(`{"metadata": {"annotations": {"note": "{\"podref\":\"default\\/web-0\"}"}}, "spec": {"range": "?"}}`), "kept", false},
		{"a pool whose metadata cannot be decoded names the pod",
			items(`{"metadata": {"uid": 7}, "spec": {"range": "?", "allocations": {"4": {"podref": "default/web-0"}}}}`), "kept", false},
		{"held for the same pod under an unreadable key", entry("four", "default/web-0"), "kept", false},
		{"held under an unreadable key of another range",
			items(`{"metadata": {"name": "10.9.0.0-24"}, "spec": {"range": "10.9.0.0/24", "allocations": {"four": {"podref": "default/web-0"}}}}`), "gone", true},
		{"held under an unreadable key of a range that has IPv4 in IPv6 in it",
			items(`{"spec": {"range": "::/80", "allocations": {"four": {"podref": "default/web-0"}}}}`), "kept", false},
		{"held for the same pod in an entry that cannot be decoded",
			items(`{"spec": {"range": "10.0.0.0/24", "allocations": {"4": {"id": 7, "podref": "default/web-0"}}}}`), "kept", false},
		{"held for a longer name in an entry that cannot be decoded",
			items(`{"spec": {"range": "10.0.0.0/24", "allocations": {"4": {"id": 7, "podref": "default/web-01"}}}}`), "gone", true},
		{"pools forbidden", refuse(apierrors.NewForbidden(poolResources, "", errors.New("no"))), "final", false},
		{"the server does not know pools", plain(http.StatusNotFound), "again", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b, ws := leakyOverlapping(t, nil, map[string]http.HandlerFunc{"GET ippools": tt.pools}, leaked)
			if got := outcomes(b.Release(t.Context(), ws)); got != tt.want {
				t.Errorf("Release = %s, want %s", got, tt.want)
			}
			if wrote := len(a.bodies(patchAt))+len(a.bodies(deleteAt)) > 0; wrote != tt.writes {
				t.Errorf("requests %s, want writes: %v", a.calls(), tt.writes)
			}
		})
	}
}

// A pool of another network holds nothing of this one, even if the pool cannot be read.
func TestOverlappingWaitsForPoolsOfItsNetwork(t *testing.T) {
	pool := func(name, prefix, key string) json.RawMessage {
		return json.RawMessage(`{"metadata": {"namespace": "kube-system", "name": "` + name + `"},
			"spec": {"range": "` + prefix + `", "allocations": {"` + key + `": {"id": "c", "podref": "default/web-0"}}}}`)
	}
	for _, tt := range []struct {
		name        string
		overlapping string
		pool        json.RawMessage
		want        bool
	}{
		{"the same network", "blue-10.0.0.4", pool("blue-10.0.0.0-24", "10.0.0.0/24", "4"), true},
		{"a node slice of the network", "blue-10.0.0.4", pool("blue-node-1-10.0.0.0-24", "10.0.0.0/24", "4"), true},
		{"another network", "blue-10.0.0.4", pool("green-10.0.0.0-24", "10.0.0.0/24", "4"), false},
		{"the unnamed network", "blue-10.0.0.4", pool("10.0.0.0-24", "10.0.0.0/24", "4"), false},
		{"a network or a node beside the unnamed network", "10.0.0.4", pool("blue-10.0.0.0-24", "10.0.0.0/24", "4"), true},
		{"the same network, under an unreadable key", "blue-10.0.0.4", pool("blue-10.0.0.0-24", "10.0.0.0/24", "four"), true},
		{"another network, under an unreadable key", "blue-10.0.0.4", pool("green-10.0.0.0-24", "10.0.0.0/24", "four"), false},
		{"the same network, without a range", "blue-10.0.0.4", pool("blue-10.0.0.0-24", "?", "4"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": items(string(tt.pool))})
			r := ipam.Allocation{Key: tt.overlapping, IP: readings(tt.overlapping)[0].ip}
			r.Owner.Pod = ipam.PodRef{Namespace: "default", Name: "web-0"}
			held, err := NewOverlapping(client, Settings{}, atOnce).heldBy(t.Context(), []*removal{{r: r}}, time.Now())
			if err != nil || (held[0] != "") != tt.want {
				t.Errorf("held by %q, %v, want it held: %v", held, err, tt.want)
			}
		})
	}
}

// With --wait, a run lists again, after it has released allocations in the pools.
func TestPoolsAreReadAgainAfterEachListing(t *testing.T) {
	held := items(`{"metadata": {"namespace": "other", "name": "10.0.0.0-24"},
		"spec": {"range": "10.0.0.0/24", "allocations": {"4": {"id": "c", "podref": "default/web-0"}}}}`)
	_, b, ws := leakyOverlapping(t, nil, map[string]http.HandlerFunc{"GET ippools": first(held, items())}, leaked)
	if got := outcomes(b.Release(t.Context(), ws)); got != "kept" {
		t.Errorf("Release = %s, want kept", got)
	}
	for _, err := range b.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := outcomes(b.Release(t.Context(), ws)); got != "gone" {
		t.Errorf("Release after another listing = %s, want gone", got)
	}
}

func TestTombstoneAnswers(t *testing.T) {
	later := func(object string) string { return strings.Replace(object, `"44"`, `"45"`, 1) }
	adopted := later(overlappingJSON("10.0.0.4", `{"podref":"default/web-1"}`, `{}`))
	for _, tt := range []struct {
		name       string
		patch, get http.HandlerFunc
		want       string
		deleted    bool
	}{
		{"gone already", overlappingNotFound, nil, "gone", false},
		{"a proxy knows no such path", plain(http.StatusNotFound), nil, "final", false},
		{"server broken", broken, nil, "again", false},
		{"forbidden", overlappingForbidden, nil, "final", false},
		{"answer is no object", say("<html>"), nil, "again", false},
		{"asked to wait", first(tooMany, say(withTombstone)), nil, "again", false},
		{"written meanwhile, by another owner", overlappingConflict, say(adopted), "changed", false},
		{"written meanwhile, by the same owner", overlappingConflict, say(later(leaked)), "changed", false},
		{"a conflict, and the object is unchanged", overlappingConflict, say(leaked), "again", false},
		{"written meanwhile, by us", overlappingConflict, say(withTombstone), "gone", true},
		{"written meanwhile, by a release from another owner", overlappingConflict, say(tombstoneOf("default/web-1")), "changed", false},
		{"written meanwhile, by a release without an owner", overlappingConflict, say(tombstoneOf("")), "changed", false},
		{"deleted by us meanwhile, and finalizers keep it", overlappingConflict, say(beingDeleted(withTombstone)), "deleting", false},
		{"written and gone meanwhile", overlappingConflict, overlappingNotFound, "gone", false},
		{"written meanwhile, and a proxy knows no such path", overlappingConflict, plain(http.StatusNotFound), "final", false},
		{"written meanwhile, and cannot be read", overlappingConflict, broken, "again", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b, ws := leakyOverlapping(t, nil, map[string]http.HandlerFunc{patchAt: tt.patch, getAt: tt.get}, leaked)
			if got := outcomes(b.Release(t.Context(), ws)); got != tt.want {
				t.Errorf("Release = %s, want %s", got, tt.want)
			}
			deletions := a.bodies(deleteAt)
			if deleted := len(deletions) > 0; deleted != tt.deleted {
				t.Errorf("deleted = %v, want %v", deleted, tt.deleted)
			}
			if tt.deleted && deletions[0].Body != deleteBody {
				t.Errorf("deletion = %s, want %s", deletions[0].Body, deleteBody)
			}
		})
	}
}

func TestDeletionAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"gone already", overlappingNotFound, "gone"},
		{"a proxy knows no such path", plain(http.StatusNotFound), "final"},
		{"written meanwhile", overlappingConflict, "again"},
		{"server broken", broken, "lost"},
		{"forbidden", overlappingForbidden, "final"},
		{"asked to wait", first(tooMany, overlappingNotFound), "again"},
		{"finalizers keep it", say(beingDeleted(withTombstone)), "deleting"},
		{"no JSON", say("<html>"), "lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b, ws := leakyOverlapping(t, nil, map[string]http.HandlerFunc{deleteAt: tt.answer}, leaked)
			if got := outcomes(b.Release(t.Context(), ws)); got != tt.want {
				t.Errorf("Release = %s, want %s", got, tt.want)
			}
			if patches := len(a.bodies(patchAt)); patches != 1 {
				t.Errorf("%d patches, want that of the tombstone alone", patches)
			}
		})
	}
}

func TestInterruptedReleaseIsTakenUp(t *testing.T) {
	a, b, ws := leakyOverlapping(t, nil, map[string]http.HandlerFunc{getAt: say(withTombstone)}, withTombstone)
	if got := outcomes(b.Release(t.Context(), ws)); got != "gone" {
		t.Errorf("Release = %s, want gone", got)
	}
	if diff := cmp.Diff([]string{"GET ippools", getAt, "GET ippools", deleteAt}, a.calls()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestOverlappingWithoutWarrantStays(t *testing.T) {
	a, b, ws := leakyOverlapping(t, nil, nil, leaked)
	if got := outcomes(b.Release(t.Context(), []ipam.Warrant{{}})); got != "no-warrant" {
		t.Errorf("Release without a warrant = %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := outcomes(b.Release(ctx, ws)); got != "again" {
		t.Errorf("Release under a cancelled context = %s, want again", got)
	}
	if calls := a.calls(); len(calls) != 0 {
		t.Errorf("requests %s, want none", calls)
	}
}

func TestMend(t *testing.T) {
	web := ipam.PodRef{Namespace: "default", Name: "web-0"}
	for _, tt := range []struct {
		name       string
		owner      ipam.PodRef
		get, patch http.HandlerFunc
		failed     bool
		patches    int
	}{
		{"owner gets its name back", web, say(withTombstone), say(leaked), false, 1},
		{"whole already", web, say(leaked), nil, false, 0},
		{"gone", web, overlappingNotFound, nil, false, 0},
		{"gone before it was written", web, say(withTombstone), overlappingNotFound, false, 1},
		{"a tombstone for another owner", web, say(tombstoneOf("default/web-1")), nil, false, 0},
		{"the owner is unknown", ipam.PodRef{}, say(tombstoneOf("")), nil, false, 0},
		{"a proxy knows no such path", web, plain(http.StatusNotFound), nil, true, 0},
		{"cannot be read", web, broken, nil, true, 0},
		{"finalizers keep it", web, say(beingDeleted(withTombstone)), nil, true, 0},
		{"written meanwhile", web, say(withTombstone), overlappingConflict, true, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, client := newAPI(t, map[string]http.HandlerFunc{getAt: tt.get, patchAt: tt.patch})
			err := NewOverlapping(client, Settings{}, atOnce).Mend(t.Context(), ipam.Allocation{
				Pool: anOverlapping, Owner: ipam.Owner{Pod: tt.owner}, Interrupted: true})
			if (err != nil) != tt.failed {
				t.Errorf("Mend = %v, want an error: %v", err, tt.failed)
			}
			patches := a.bodies(patchAt)
			if len(patches) != tt.patches {
				t.Fatalf("requests %s, want %d patches", a.calls(), tt.patches)
			}
			if tt.patches > 0 && patches[0].Body != restoreBody {
				t.Errorf("patch = %s, want %s", patches[0].Body, restoreBody)
			}
		})
	}
}
