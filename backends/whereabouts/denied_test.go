package whereabouts

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			a, b, ws := leakyOverlapping(t, nil, tt.answers, leaked)
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
