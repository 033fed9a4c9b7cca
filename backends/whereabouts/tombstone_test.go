package whereabouts

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/reaper"
)

const (
	buryBody = `{"metadata":{"annotations":{"ip-reaper/owner":"default/web-0"},"resourceVersion":"44","uid":"u4"},` +
		`"spec":{"podref":"_ip-reaper/_released"}}`
	restoreBody = `{"metadata":{"annotations":{"ip-reaper/owner":null},"resourceVersion":"45","uid":"u4"},` +
		`"spec":{"podref":"default/web-0"}}`
	deleteBody = `{"kind":"DeleteOptions","apiVersion":"whereabouts.cni.cncf.io/v1alpha1",` +
		`"preconditions":{"uid":"u4","resourceVersion":"45"}}` + "\n"
	patchAt  = "PATCH " + oripAt
	getAt    = "GET " + oripAt
	deleteAt = "DELETE " + oripAt
)

var (
	leaked  = orip("10.0.0.4", `{"podref":"default/web-0"}`, `{}`)
	buried  = tombstoneOf("default/web-0")
	notORIP = refuse(apierrors.NewNotFound(oripResources, "10.0.0.4"))
	oripRV  = refuse(apierrors.NewConflict(oripResources, "10.0.0.4", errors.New("the object has been modified")))
	oripNo  = refuse(apierrors.NewForbidden(oripResources, "10.0.0.4", errors.New("no")))
	broken  = refuse(apierrors.NewInternalError(errors.New("etcd is gone")))
)

// tombstoneOf is the reservation as it is stored after its burial.
func tombstoneOf(owner string) string {
	return `{"metadata": {"namespace": "kube-system", "name": "10.0.0.4", "uid": "u4", "resourceVersion": "45",
		"annotations": {"ip-reaper/owner": "` + owner + `"}}, "spec": {"podref": "_ip-reaper/_released"}}`
}

// leakyReservation is a server with a leaked reservation, its backend and the
// warrant for it. What is not answered otherwise succeeds.
func leakyAllocation(t *testing.T, stored string, cluster reaper.Cluster, answers map[string]http.HandlerFunc) (*api, *Overlapping, []reaper.Warrant) {
	t.Helper()
	a, client := newAPI(t, map[string]http.HandlerFunc{
		"GET overlappingrangeipreservations": items(stored),
		"GET ippools":                        items(),
		patchAt:                              say(buried),
		deleteAt:                             say(`{"kind": "Status", "apiVersion": "v1", "status": "Success"}`),
	})
	b := NewOverlapping(client)
	ws := warrants(t, b, cluster)
	if len(ws) != 1 {
		t.Fatalf("%d warrants, want 1", len(ws))
	}
	for call, with := range answers {
		a.answer(call, with)
	}
	a.answer("", nil) // forgets the listing
	return a, b, ws
}

// comesBack is a cluster whose owner is absent for as many looks and then there.
func comesBack(looks int) town {
	return town{look: func(ref reaper.PodRef) (reaper.Pod, reaper.Presence, error) {
		if looks--; looks >= 0 {
			return reaper.Pod{}, reaper.Absent, nil
		}
		return reaper.Pod{Ref: ref}, reaper.Present, nil
	}}
}

func TestAllocationIsBuriedThenDeleted(t *testing.T) {
	a, b, ws := leakyAllocation(t, leaked, town{}, nil)
	if got := words(b.Release(t.Context(), anORIP, ws)); got != "gone" {
		t.Errorf("Release = %s, want gone", got)
	}
	if diff := cmp.Diff([]string{"GET ippools", patchAt, "GET ippools", deleteAt}, a.calls()); diff != "" {
		t.Fatalf("requests (-want +got):\n%s", diff)
	}
	patch := a.bodies(patchAt)[0]
	if diff := cmp.Diff(buryBody, patch.Body); diff != "" || patch.Type != "application/merge-patch+json" {
		t.Errorf("%s patch (-want +got):\n%s", patch.Type, diff)
	}
	if diff := cmp.Diff(deleteBody, a.bodies(deleteAt)[0].Body); diff != "" {
		t.Errorf("deletion (-want +got):\n%s", diff)
	}
}

func TestOwnerThatComesBackGetsItsNameBack(t *testing.T) {
	for _, tt := range []struct {
		name    string
		restore http.HandlerFunc
		want    string
	}{
		{"restored", say(leaked), "returned"},
		{"gone meanwhile", notORIP, "returned"},
		{"written meanwhile", oripRV, "again"},
		{"server broken", broken, "again"},
		{"forbidden", oripNo, "final"},
		{"a proxy knows no such path", plain(http.StatusNotFound), "final"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b, ws := leakyAllocation(t, leaked, comesBack(1), map[string]http.HandlerFunc{patchAt: first(say(buried), tt.restore)})
			if got := words(b.Release(t.Context(), anORIP, ws)); got != tt.want {
				t.Errorf("Release = %s, want %s", got, tt.want)
			}
			if diff := cmp.Diff([]string{"GET ippools", patchAt, "GET ippools", patchAt}, a.calls()); diff != "" {
				t.Fatalf("requests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(restoreBody, a.bodies(patchAt)[1].Body); diff != "" {
				t.Errorf("restoration (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOwnerThatCannotBeLookedAtAgainStaysBuried(t *testing.T) {
	looks := 0
	a, b, ws := leakyAllocation(t, leaked, town{look: func(reaper.PodRef) (reaper.Pod, reaper.Presence, error) {
		if looks++; looks == 1 {
			return reaper.Pod{}, reaper.Absent, nil
		}
		return reaper.Pod{}, reaper.Unknown, errors.New("timeout")
	}}, nil)
	if got := words(b.Release(t.Context(), anORIP, ws)); got != "again" {
		t.Errorf("Release = %s, want again", got)
	}
	if diff := cmp.Diff([]string{"GET ippools", patchAt, "GET ippools"}, a.calls()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestAllocationWaitsForItsPoolEntry(t *testing.T) {
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
		{"another address of the pod", entry("5", "default/web-0"), "gone", true},
		{"no pools", items(), "gone", true},
		{"a pool that nobody understands", items(`{"spec": 1}`), "gone", true},
		{"a pool that nobody understands names the pod",
			items(`{"spec": {"range": "?", "allocations": {"4": {"podref": "default/web-0"}}}}`), "kept", false},
		{"held for the same pod under a key that nobody understands", entry("four", "default/web-0"), "kept", false},
		{"held for another pod under a key that nobody understands", entry("four", "default/web-1"), "gone", true},
		{"pools forbidden", refuse(apierrors.NewForbidden(poolResources, "", errors.New("no"))), "final", false},
		{"the server does not know pools", plain(http.StatusNotFound), "again", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b, ws := leakyAllocation(t, leaked, town{}, map[string]http.HandlerFunc{"GET ippools": tt.pools})
			if got := words(b.Release(t.Context(), anORIP, ws)); got != tt.want {
				t.Errorf("Release = %s, want %s", got, tt.want)
			}
			if wrote := len(a.bodies(patchAt))+len(a.bodies(deleteAt)) > 0; wrote != tt.writes {
				t.Errorf("requests %s, want writes: %v", a.calls(), tt.writes)
			}
		})
	}
}

// A run that waits looks again, and has released more of the pools by then.
func TestPoolsAreReadAgainAfterEachListing(t *testing.T) {
	held := items(`{"metadata": {"namespace": "other", "name": "10.0.0.0-24"},
		"spec": {"range": "10.0.0.0/24", "allocations": {"4": {"id": "c", "podref": "default/web-0"}}}}`)
	_, b, ws := leakyAllocation(t, leaked, town{}, map[string]http.HandlerFunc{"GET ippools": first(held, items())})
	if got := words(b.Release(t.Context(), anORIP, ws)); got != "kept" {
		t.Errorf("Release = %s, want kept", got)
	}
	for _, err := range b.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := words(b.Release(t.Context(), anORIP, ws)); got != "gone" {
		t.Errorf("Release after another listing = %s, want gone", got)
	}
}

// The owner was back for a moment: it is gone again, but its entry is there.
func TestAllocationGetsItsNameBackWhereAPoolHoldsTheAddressAgain(t *testing.T) {
	held := items(`{"metadata": {"namespace": "other", "name": "10.0.0.0-24"},
		"spec": {"range": "10.0.0.0/24", "allocations": {"4": {"id": "c", "podref": "default/web-0"}}}}`)
	a, b, ws := leakyAllocation(t, leaked, town{}, map[string]http.HandlerFunc{"GET ippools": first(items(), held)})
	if got := words(b.Release(t.Context(), anORIP, ws)); got != "kept" {
		t.Errorf("Release = %s, want kept", got)
	}
	if diff := cmp.Diff([]string{"GET ippools", patchAt, "GET ippools", patchAt}, a.calls()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestBurialAnswers(t *testing.T) {
	later := func(object string) string { return strings.Replace(object, `"44"`, `"45"`, 1) }
	adopted := later(orip("10.0.0.4", `{"podref":"default/web-1"}`, `{}`))
	for _, tt := range []struct {
		name       string
		patch, get http.HandlerFunc
		want       string
		deleted    bool
	}{
		{"gone already", notORIP, nil, "gone", false},
		{"a proxy knows no such path", plain(http.StatusNotFound), nil, "final", false},
		{"server broken", broken, nil, "again", false},
		{"forbidden", oripNo, nil, "final", false},
		{"answer is no object", say("<html>"), nil, "again", false},
		{"written meanwhile, by another owner", oripRV, say(adopted), "changed", false},
		{"written meanwhile, by the same owner", oripRV, say(later(leaked)), "changed", false},
		{"written by nobody", oripRV, say(leaked), "again", false},
		{"written meanwhile, by us", oripRV, say(buried), "gone", true},
		{"written meanwhile, by a release from another owner", oripRV, say(tombstoneOf("default/web-1")), "changed", false},
		{"written meanwhile, by a release from nobody", oripRV, say(tombstoneOf("")), "changed", false},
		{"written and gone meanwhile", oripRV, notORIP, "gone", false},
		{"written meanwhile, and a proxy knows no such path", oripRV, plain(http.StatusNotFound), "final", false},
		{"written meanwhile, and cannot be read", oripRV, broken, "again", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b, ws := leakyAllocation(t, leaked, town{}, map[string]http.HandlerFunc{patchAt: tt.patch, getAt: tt.get})
			if got := words(b.Release(t.Context(), anORIP, ws)); got != tt.want {
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
		{"gone already", notORIP, "gone"},
		{"a proxy knows no such path", plain(http.StatusNotFound), "final"},
		{"written meanwhile", oripRV, "again"},
		{"server broken", broken, "again"},
		{"forbidden", oripNo, "final"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, b, ws := leakyAllocation(t, leaked, town{}, map[string]http.HandlerFunc{deleteAt: tt.answer})
			if got := words(b.Release(t.Context(), anORIP, ws)); got != tt.want {
				t.Errorf("Release = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestInterruptedReleaseIsTakenUp(t *testing.T) {
	a, b, ws := leakyAllocation(t, buried, town{}, map[string]http.HandlerFunc{getAt: say(buried)})
	if got := words(b.Release(t.Context(), anORIP, ws)); got != "gone" {
		t.Errorf("Release = %s, want gone", got)
	}
	if diff := cmp.Diff([]string{"GET ippools", getAt, "GET ippools", deleteAt}, a.calls()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestAllocationWithoutWarrantStays(t *testing.T) {
	a, b, ws := leakyAllocation(t, leaked, town{}, nil)
	if got := words(b.Release(t.Context(), anORIP, []reaper.Warrant{{}})); got != "no-warrant" {
		t.Errorf("Release without a warrant = %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := words(b.Release(ctx, anORIP, ws)); got != "again" {
		t.Errorf("Release under a cancelled context = %s, want again", got)
	}
	if calls := a.calls(); len(calls) != 0 {
		t.Errorf("requests %s, want none", calls)
	}
}

func TestMend(t *testing.T) {
	web := reaper.PodRef{Namespace: "default", Name: "web-0"}
	for _, tt := range []struct {
		name       string
		owner      reaper.PodRef
		get, patch http.HandlerFunc
		failed     bool
		patches    int
	}{
		{"owner gets its name back", web, say(buried), say(leaked), false, 1},
		{"whole already", web, say(leaked), nil, false, 0},
		{"gone", web, notORIP, nil, false, 0},
		{"gone before it was written", web, say(buried), notORIP, false, 1},
		{"buried for another owner", web, say(tombstoneOf("default/web-1")), nil, false, 0},
		{"nobody knows the owner", reaper.PodRef{}, say(tombstoneOf("")), nil, false, 0},
		{"a proxy knows no such path", web, plain(http.StatusNotFound), nil, true, 0},
		{"cannot be read", web, broken, nil, true, 0},
		{"written meanwhile", web, say(buried), oripRV, true, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, client := newAPI(t, map[string]http.HandlerFunc{getAt: tt.get, patchAt: tt.patch})
			err := NewOverlapping(client).Mend(t.Context(), reaper.Allocation{
				Pool: anORIP, Owner: reaper.Owner{Pod: tt.owner}, Interrupted: true})
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
