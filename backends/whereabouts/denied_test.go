package whereabouts

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// deny answers as the API server does if a webhook denies a write.
func deny(code int32) http.HandlerFunc {
	return refuse(&apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: "Forbidden",
		Message: `admission webhook "guard.example.com" denied the request: podref is immutable`}})
}

// A webhook may deny any write, with any code. Then the release ends, the report says why, and
// the object is as before.
func TestWebhookMayDenyTheRelease(t *testing.T) {
	unreachable := refuse(apierrors.NewInternalError(errors.New(`failed calling webhook "guard.example.com": timeout`)))
	for _, tt := range []struct {
		name    string
		answers map[string]http.HandlerFunc
		want    string
		says    string
		calls   []string
	}{
		{"the tombstone", map[string]http.HandlerFunc{patchAt: deny(403)}, "final", "OverlappingRangeIPReservation kube-system/10.0.0.4",
			[]string{"GET ippools", patchAt}},
		{"the tombstone, with a conflict", map[string]http.HandlerFunc{patchAt: deny(409)}, "final", "podref is immutable",
			[]string{"GET ippools", patchAt}},
		{"the tombstone, with not found", map[string]http.HandlerFunc{patchAt: deny(404)}, "final", "podref is immutable",
			[]string{"GET ippools", patchAt}},
		{"the tombstone, as it does not answer", map[string]http.HandlerFunc{patchAt: unreachable}, "again", "repair the webhook",
			[]string{"GET ippools", patchAt}},
		{"the deletion", map[string]http.HandlerFunc{deleteAt: deny(403)}, "final", "OverlappingRangeIPReservation kube-system/10.0.0.4",
			[]string{"GET ippools", patchAt, "GET ippools", deleteAt, patchAt}},
		{"the deletion, and then all", map[string]http.HandlerFunc{deleteAt: deny(403), patchAt: first(say(withTombstone), deny(403))},
			"final", "its tombstone stays", []string{"GET ippools", patchAt, "GET ippools", deleteAt, patchAt}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b, ws := leakyOverlapping(t, leaked, fakeCluster{}, tt.answers)
			errs := b.Release(t.Context(), ws)
			if got := outcomes(errs); got != tt.want {
				t.Errorf("Release = %s, want %s", got, tt.want)
			}
			for _, part := range []string{`"guard.example.com"`, tt.says, "exempt the ServiceAccount of ip-reaper"} {
				if errs[0] == nil || !strings.Contains(errs[0].Error(), part) {
					t.Errorf("Release = %v, want %q in it", errs[0], part)
				}
			}
			if diff := cmp.Diff(tt.calls, a.calls()); diff != "" {
				t.Fatalf("requests (-want +got):\n%s", diff)
			}
			if patches := a.bodies(patchAt); len(patches) > 1 && patches[1].Body != restoreBody {
				t.Errorf("the tombstone becomes %s, want %s", patches[1].Body, restoreBody)
			}
		})
	}
}

// A webhook denies the patch of a pool as a whole, even with the code of a failed test.
func TestWebhookMayDenyThePatchOfAPool(t *testing.T) {
	for _, code := range []int32{403, 409, 422, 500} {
		a, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": items(leakyPool), "PATCH " + poolAt: deny(code)})
		b := NewPools(client)
		ws := warrants(t, b, fakeCluster{})
		a.answer("", nil)
		for _, err := range b.Release(t.Context(), ws) {
			if err == nil || errors.Is(err, ipam.ErrAgain) || !strings.Contains(err.Error(), `"guard.example.com" refuses to write IPPool kube-system/10.0.0.0-24`) {
				t.Errorf("Release, denied with %d = %v, want a final error that names the webhook and the pool", code, err)
			}
		}
		if diff := cmp.Diff([]string{"PATCH " + poolAt}, a.calls()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}
}

func TestWebhookMayDenyARestore(t *testing.T) {
	for _, code := range []int32{403, 409, 500} {
		a, client := newAPI(t, map[string]http.HandlerFunc{createAt: deny(code)})
		records := []ipam.Record{overlappingRecord(storedOverlapping("default/web-0", ""))}
		errs := NewOverlapping(client).Restore(t.Context(), anOverlapping, records)
		if errs[0] == nil || !strings.Contains(errs[0].Error(), `"guard.example.com"`) {
			t.Errorf("Restore, denied with %d = %v, want an error that names the webhook", code, errs[0])
		}
		if diff := cmp.Diff([]string{createAt}, a.calls()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}
	for _, code := range []int32{403, 422} {
		a, client := newAPI(t, map[string]http.HandlerFunc{"GET " + poolAt: say(leakyPool), "PATCH " + poolAt: deny(code)})
		errs := NewPools(client).Restore(t.Context(), aPool, []ipam.Record{{
			Backend: PoolsName, Pool: aPool, Key: "99", IP: "10.0.0.99", Stored: json.RawMessage(`{"id":"c","podref":"default/web-0"}`)}})
		if errs[0] == nil || !strings.Contains(errs[0].Error(), `"guard.example.com"`) {
			t.Errorf("Restore, denied with %d = %v, want an error that names the webhook", code, errs[0])
		}
		if diff := cmp.Diff([]string{"GET " + poolAt, "PATCH " + poolAt}, a.calls()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	}
}
