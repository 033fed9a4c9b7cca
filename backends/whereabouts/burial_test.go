package whereabouts

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// numbered returns the overlapping reservations 10.0.0.1 to 10.0.0.n of the pods web-1 to web-n.
func numbered(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.NewReplacer("10.0.0.4", fmt.Sprint("10.0.0.", i+1), "web-0", fmt.Sprint("web-", i+1)).Replace(leaked)
	}
	return all
}

// phases returns the requests in the order of their steps. Those of one step have no order, so
// they are sorted.
func phases(calls []string) []string {
	step := func(call string) string { method, _, _ := strings.Cut(call, " "); return method }
	for begin := 0; begin < len(calls); {
		end := begin
		for end < len(calls) && step(calls[end]) == step(calls[begin]) {
			end++
		}
		slices.Sort(calls[begin:end])
		begin = end
	}
	return calls
}

// Promise 4. All tombstones come before the one list of the pools, and that before the first
// deletion. Each reservation is written twice.
func TestBatchIsReleasedStepByStep(t *testing.T) {
	for _, atOnce := range []int{1, 3, 32} {
		a, b, ws := leakyOverlapping(t, nil, nil, numbered(9)...)
		b.atOnce = atOnce
		if got := outcomes(b.Release(t.Context(), ws)); got != strings.TrimSuffix(strings.Repeat("gone ", 9), " ") {
			t.Errorf("Release = %s, want all gone", got)
		}
		want := []string{"GET ippools"}
		for n := range 9 {
			want = append(want, fmt.Sprint("PATCH "+at("10.0.0."), n+1))
		}
		want = append(want, "GET ippools")
		for n := range 9 {
			want = append(want, fmt.Sprint("DELETE "+at("10.0.0."), n+1))
		}
		if diff := cmp.Diff(want, phases(a.calls())); diff != "" {
			t.Errorf("requests with %d at once (-want +got):\n%s", atOnce, diff)
		}
	}
}

// The check before the tombstones may use the pools that the previous batch listed after its
// own.
func TestNextBatchListsThePoolsOnce(t *testing.T) {
	a, b, ws := leakyOverlapping(t, nil, nil, numbered(4)...)
	b.Release(t.Context(), ws[:2])
	a.answer("", nil)
	if got := outcomes(b.Release(t.Context(), ws[2:])); got != "gone gone" {
		t.Errorf("Release = %s, want both gone", got)
	}
	if lists := len(a.bodies("GET ippools")); lists != 1 {
		t.Errorf("%d lists of the pools, want 1, after the tombstones", lists)
	}
	if first := a.calls()[0]; first == "GET ippools" {
		t.Error("the pools are listed before the tombstones, and were listed a moment ago")
	}
}

// Promise 7, 9. In one batch, each reservation gets its own outcome.
func TestEachReservationOfABatchComesToItsOwnEnd(t *testing.T) {
	held := func(n int) string {
		return fmt.Sprintf(`{"metadata": {"namespace": "other", "name": "10.0.0.0-24"}, "spec": {"range": "10.0.0.0/24",
			"allocations": {"%d": {"id": "c", "podref": "default/web-%d"}}}}`, n, n)
	}
	conflict := refuse(apierrors.NewConflict(overlappingResources, "x", errors.New("the object has been modified")))
	missing := func(n int) http.HandlerFunc {
		return refuse(apierrors.NewNotFound(overlappingResources, fmt.Sprint("10.0.0.", n)))
	}
	cluster := comesBack("web-5", 1, "web-6")
	a, b, ws := leakyOverlapping(t, cluster, map[string]http.HandlerFunc{
		"GET ippools":               first(items(held(2)), items(held(2), held(4))),
		"PATCH " + at("10.0.0.3"):   conflict,
		"GET " + at("10.0.0.3"):     say(strings.Replace(numbered(3)[2], `"44"`, `"46"`, 1)),
		"PATCH " + at("10.0.0.7"):   missing(7),
		"DELETE " + at("10.0.0.8"):  conflict,
		"DELETE " + at("10.0.0.9"):  deny(403),
		"DELETE " + at("10.0.0.10"): missing(10),
	}, numbered(10)...)
	const want = "gone kept changed kept returned again gone again final gone"
	if got := outcomes(b.Release(t.Context(), ws)); got != want {
		t.Errorf("Release = %s, want %s", got, want)
	}
	for n, want := range map[int][2]int{ // patches and deletions
		1: {1, 1}, 2: {0, 0}, 3: {1, 0}, 4: {2, 0}, 5: {2, 0}, 6: {1, 0}, 7: {1, 0}, 8: {1, 1}, 9: {2, 1}, 10: {1, 1},
	} {
		name := at(fmt.Sprint("10.0.0.", n))
		if got := [2]int{len(a.bodies("PATCH " + name)), len(a.bodies("DELETE " + name))}; got != want {
			t.Errorf("10.0.0.%d has %d patches and %d deletions, want %d and %d", n, got[0], got[1], want[0], want[1])
		}
	}
}

// Promise 2, 8. If the pools cannot be listed after the tombstones, these stay and nothing is
// deleted. The next attempt lists the pools, and writes no new tombstones.
func TestNextAttemptGoesOnAfterTheTombstones(t *testing.T) {
	_, b, ws := leakyOverlapping(t, nil, map[string]http.HandlerFunc{
		"GET ippools": first(items(), first(refuse(apierrors.NewForbidden(poolResources, "", errors.New("no"))), items())),
	}, numbered(3)...)
	if got := outcomes(b.Release(t.Context(), ws)); got != "final final final" {
		t.Errorf("Release = %s, want that nothing is decided", got)
	}
	a, b, ws := leakyOverlapping(t, nil, map[string]http.HandlerFunc{
		"GET ippools": first(items(), first(plain(http.StatusNotFound), items())),
	}, numbered(3)...)
	if got := outcomes(b.Release(t.Context(), ws)); got != "again again again" {
		t.Errorf("Release = %s, want that nothing is decided", got)
	}
	a.answer("", nil)
	if got := outcomes(b.Release(t.Context(), ws)); got != "gone gone gone" {
		t.Errorf("Release again = %s, want all gone", got)
	}
	want := []string{"GET ippools", "DELETE " + at("10.0.0.1"), "DELETE " + at("10.0.0.2"), "DELETE " + at("10.0.0.3")}
	if diff := cmp.Diff(want, phases(a.calls())); diff != "" {
		t.Errorf("requests of the second attempt (-want +got):\n%s", diff)
	}
}

// Promise 4. No deletion rests on a look that is more than two seconds old: a reservation whose
// turn comes too late stays as it is. Only time makes a warrant expire, hence the sleep.
func TestLateDeletionOfABatchIsNotMade(t *testing.T) {
	slow := func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(ipam.Freshness + 10*time.Millisecond)
		say(`{"kind": "Status", "apiVersion": "v1", "status": "Success"}`)(w, r)
	}
	a, b, ws := leakyOverlapping(t, nil, map[string]http.HandlerFunc{"DELETE " + at("10.0.0.1"): slow}, numbered(2)...)
	b.atOnce = 1
	if got := outcomes(b.Release(t.Context(), ws)); got != "gone again" {
		t.Errorf("Release = %s, want the second one undecided", got)
	}
	if late := a.bodies("DELETE " + at("10.0.0.2")); len(late) > 0 {
		t.Errorf("%d deletions by an expired warrant", len(late))
	}
}
