package kube

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A DeniedError is a write that admission control refused: a webhook, or a
// ValidatingAdmissionPolicy. It does not unwrap to the API server's status: a webhook chooses
// the code of its answer, so the code says nothing about the object.
type DeniedError struct {
	By      string // what refused, such as: admission webhook "pods.example.com"
	Object  string // kind and name of the object
	Message string // the API server's

	// Unreachable is set if the webhook did not answer, and the API server refused in its
	// place. The same write may succeed later.
	Unreachable bool
}

// Error says what refused which write, and what to do.
func (e *DeniedError) Error() string {
	if e.Unreachable {
		return fmt.Sprintf("the %s does not answer, so the API server refuses to write %s; repair the webhook, or %s: %s",
			e.By, e.Object, exempt, e.Message)
	}
	if strings.HasPrefix(e.By, shippedPolicies) {
		return fmt.Sprintf("the %s refuses to write %s; restore as an administrator, or with an account that does not release, such as ip-reaper-restore, and install the policies and the program in the same version: %s",
			e.By, e.Object, e.Message)
	}
	return fmt.Sprintf("the %s refuses to write %s; %s, or correct what it names: %s", e.By, e.Object, exempt, e.Message)
}

// exempt is what lets a run write despite a webhook or a policy.
const exempt = "exempt the ServiceAccount of ip-reaper in its matchConditions"

// shippedPolicies begins the names of the policies in deploy/helm/ip-reaper/admission.
// The accounts of ip-reaper must not be exempt from them.
const shippedPolicies = "ValidatingAdmissionPolicy 'ip-reaper-"

// refusals are how an API server begins the message of a refused write: in
// k8s.io/apiserver, ToStatusErr of pkg/admission/plugin/webhook/errors,
// ErrCallingWebhook of pkg/util/webhook, and the dispatchers below
// pkg/admission/plugin/policy.
var refusals = []struct {
	message     *regexp.Regexp
	by          string
	unreachable bool
}{
	{regexp.MustCompile(`^admission webhook ("[^"]*") denied the request`), "admission webhook ", false},
	{regexp.MustCompile(`^Internal error occurred: failed calling webhook ("[^"]*")`), "admission webhook ", true},
	{regexp.MustCompile(`^\S+ "[^"]*" is forbidden: ValidatingAdmissionPolicy ('[^']*')[^:]* denied request`), "ValidatingAdmissionPolicy ", false},
	{regexp.MustCompile(`^\S+ "[^"]*" is forbidden: policy ('[^']*')[^:]* denied request`), "admission policy ", false},
}

// Denied returns a *DeniedError if the error of a write says that admission control refused it,
// and other errors unchanged. object is the kind and name of the object, such as Pod
// default/web-0.
func Denied(err error, object string) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	message := status.Status().Message
	for _, r := range refusals {
		if found := r.message.FindStringSubmatch(message); found != nil {
			return &DeniedError{By: r.by + found[1], Object: object, Message: message, Unreachable: r.unreachable}
		}
	}
	return err
}

// IsDenied reports whether admission control refused a write, and would refuse it again.
func IsDenied(err error) bool {
	var denied *DeniedError
	return errors.As(err, &denied) && !denied.Unreachable
}
