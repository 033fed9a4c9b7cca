package kube

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// refusal is an answer of the API server.
func refusal(code int32, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
}

func TestDeniedNamesWhatRefuses(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	const hook = `admission webhook "pods.example.com"`
	for _, tt := range []struct {
		name        string
		err         error
		by          string // empty: admission control did not refuse it
		unreachable bool
	}{
		{"a webhook", refusal(http.StatusForbidden, hook+` denied the request: only the plugin may`), hook, false},
		{"a webhook with a conflict", refusal(http.StatusConflict, hook+` denied the request: busy`), hook, false},
		{"a webhook that does not answer", apierrors.NewInternalError(errors.New(
			`failed calling webhook "pods.example.com": failed to call webhook: Post "https://x/": context deadline exceeded`)), hook, true},
		{"a policy", apierrors.NewForbidden(pods, "web-0", errors.New(
			`ValidatingAdmissionPolicy 'keep' with binding 'keep-all' denied request: failed expression: object.x == 1`)),
			"ValidatingAdmissionPolicy 'keep'", false},

		{"a missing right", apierrors.NewForbidden(pods, "web-0", errors.New(`User "x" cannot patch resource "pods"`)), "", false},
		{"an object that names a webhook", refusal(http.StatusUnprocessableEntity,
			`Pod "web-0" is invalid: spec.x: Invalid value: admission webhook "a" denied the request`), "", false},
		{"no answer", errors.New(hook + ` denied the request: x`), "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Denied(tt.err, "Pod default/web-0")
			var denied *DeniedError
			if !errors.As(err, &denied) {
				denied = &DeniedError{}
			}
			if diff := cmp.Diff([]any{tt.by, tt.unreachable}, []any{denied.By, denied.Unreachable}); diff != "" {
				t.Errorf("refused by (-want +got):\n%s", diff)
			}
			if tt.by == "" {
				if !errors.Is(err, tt.err) {
					t.Errorf("Denied = %v, want the error as it is", err)
				}
				return
			}
			for _, part := range []string{tt.by, "Pod default/web-0", "ServiceAccount of ip-reaper in its matchConditions", tt.err.Error()} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error = %q, want %q in it", err, part)
				}
			}
			if again := errors.Is(Transient(err), ipam.ErrAgain); again != tt.unreachable || IsDenied(err) == again {
				t.Errorf("the write is tried again: %v, denied: %v, want it tried again: %v", again, IsDenied(err), tt.unreachable)
			}
			if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
				t.Error("the code of the webhook says something about the object")
			}
		})
	}
}

// The accounts of ip-reaper must not be exempt from the policies shipped for them.
func TestDeniedByAShippedPolicyAdvisesNoExemption(t *testing.T) {
	err := Denied(refusal(http.StatusUnprocessableEntity,
		`ippools "a" is forbidden: ValidatingAdmissionPolicy 'ip-reaper-pools' with binding 'ip-reaper-pools' denied request: x`), "IPPool a")
	if !IsDenied(err) || strings.Contains(err.Error(), "exempt") || !strings.Contains(err.Error(), "ip-reaper-restore") {
		t.Errorf("error = %q, want no advice to exempt, and the account that restores", err)
	}
}
