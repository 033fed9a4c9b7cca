package kube

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Transient wraps an error of a request to the API server in ipam.ErrAgain if the same request
// may succeed later: the connection failed, another client wrote first, or the server is busy
// or broken. It returns nil and other errors unchanged, including what admission control denied
// and what wraps ipam.ErrRefused or ipam.ErrDeleting.
func Transient(err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil, errors.Is(err, ipam.ErrAgain), errors.Is(err, ipam.ErrRefused), errors.Is(err, ipam.ErrDeleting), IsDenied(err):
		return err
	case !errors.As(err, &status):
		return &ipam.RetryAfterError{Err: err}
	}
	code := status.Status().Code
	if code != http.StatusConflict && code != http.StatusTooManyRequests && code < http.StatusInternalServerError {
		return err
	}
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return &ipam.RetryAfterError{Err: err, After: min(time.Duration(seconds)*time.Second, maxShut)}
}

// Unsure adds ipam.ErrLost to a retryable error of a write that may have gone through. An answer of
// the API server below 500 says that it did not, as do a refused connection and a request that was
// not sent.
func Unsure(err error) error {
	var status apierrors.APIStatus
	refused := errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError ||
		utilnet.IsConnectionRefused(err) || errors.Is(err, errUnsent)
	if refused || !errors.Is(err, ipam.ErrAgain) {
		return err
	}
	return ipam.Worded(err.Error(), ipam.ErrLost, err)
}

// Gone reports whether the API server itself answered that it does not have the object.
// A 404 of a proxy, or of a server that does not know the resource, proves nothing:
// client-go marks it as an unexpected response.
func Gone(err error, resource, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == resource && details.Name == name && !apierrors.IsUnexpectedServerError(err)
}

// Listed returns what Backend.List yields for the error of a list request: one that wraps
// ipam.ErrNotInstalled if the API server does not know the resource.
func Listed(err error, resource, group string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: no %s.%s", ipam.ErrNotInstalled, resource, group)
	}
	return fmt.Errorf("list %s.%s: %w", resource, group, err)
}

// Deleted returns the answer of a release for the error of a conditional delete: nil if the
// object is gone, an error that wraps ipam.ErrChanged if it has changed, and otherwise that of
// Unsure.
func Deleted(err error, resource, name string) error {
	switch {
	case Gone(err, resource, name):
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", ipam.ErrChanged, err)
	}
	return Unsure(Transient(err))
}

// Answered wraps an error as census.Cluster promises: in ErrAgain if the same request may
// succeed later, otherwise in ErrRefused.
func Answered(err error) error {
	if errors.Is(err, ipam.ErrRefused) {
		return err
	}
	if err = Transient(err); err == nil || errors.Is(err, ipam.ErrAgain) {
		return err
	}
	return ipam.Worded(err.Error(), ipam.ErrRefused, err)
}

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

// A Clock compares the clock of this machine with the clock of the API server, which
// sends its time in the Date of every response. It is safe for concurrent use.
type Clock struct {
	now  func() time.Time
	skew atomic.Pointer[time.Duration] // nil if no response has arrived
}

// NewClock returns a clock that has seen no response yet.
func NewClock(now func() time.Time) *Clock { return &Clock{now: now} }

// Skew returns how far this machine is ahead of the API server, to about a second. A negative
// skew means that this machine is behind. Skew returns false until a response with a Date has
// arrived.
func (c *Clock) Skew() (time.Duration, bool) {
	skew := c.skew.Load()
	if skew == nil {
		return 0, false
	}
	return *skew, true
}

// Wrap returns a transport that gives the Date of each response to the clock.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil {
			return response, err
		}
		if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			c.skew.Store(new(c.now().Sub(date).Truncate(time.Second)))
		}
		return response, nil
	})
}

// A roundTripper is a transport that is a function.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
