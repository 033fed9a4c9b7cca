package cli

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// A run may have waited since it read the installed policy, and what it would release may be held by
// now.
func TestPolicyIsReadAgainBeforeARelease(t *testing.T) {
	const configMap = `{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": %q}, "data": {"policy.yaml": %q}}`
	const atOnce = "{apiVersion: ip-reaper/v1alpha1, kind: ReapPolicy, gracePeriod: 0s, minAge: 0s, limits: {maxFraction: 1}}"
	same := fmt.Appendf(nil, configMap, "1", atOnce)
	for _, tt := range []struct {
		name string
		then []byte
		want string
	}{
		{"it is the same", same, "it is not in the journal"}, // this server stores none
		{"only its labels have changed", fmt.Appendf(nil, configMap, "2", atOnce), "it is not in the journal"},
		{"it has changed", fmt.Appendf(nil, configMap, "2", atOnce+"# now"), "nothing is released: the installed policy has changed since the run read it"},
		{"it is gone", status(http.StatusNotFound, metav1.StatusReasonNotFound, "gone", "configmaps", state.PolicyName),
			"nothing is released: the installed policy has changed since the run read it"},
		{"it cannot be read", status(http.StatusForbidden, metav1.StatusReasonForbidden, "not any more", "", ""),
			"nothing is released: the installed policy could not be read again: not any more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &fakeAPI{dir: filepath.Join("testdata", "world", "api")}
			reads := 0
			args := leadTo(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case !strings.HasSuffix(r.URL.Path, "/"+state.PolicyName):
					s.ServeHTTP(w, r)
				case reads == 0:
					reads++
					answer(w, same)
				default:
					answer(w, tt.then)
				}
			}))
			code, stdout, stderr := start(t.Context(), true, args)
			if code != exitPartial || !strings.Contains(stdout, tt.want) {
				t.Errorf("exit code %d, want %d and %q\n%s%s", code, exitPartial, tt.want, stdout, stderr)
			}
		})
	}
}
