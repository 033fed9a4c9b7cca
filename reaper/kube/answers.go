package kube

import (
	"errors"
	"fmt"
	"net/http"
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
	return markedError{err, ipam.ErrLost}
}

// A markedError is an error with the text of the API server's, which also wraps what it means.
type markedError struct {
	error
	means error
}

func (e markedError) Unwrap() []error { return []error{e.means, e.error} }

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

// A Deletion is the part of an object's metadata that says whether it is being deleted.
type Deletion struct {
	Deleted    *string  `json:"deletionTimestamp"`
	Finalizers []string `json:"finalizers"`
}

// Err returns an error that wraps ipam.ErrDeleting if the object is being deleted. It names the
// finalizers that keep the object.
func (d Deletion) Err() error {
	if d.Deleted == nil {
		return nil
	}
	return ipam.Deleting(d.Finalizers)
}

// Remains returns the error of Err for the answer to a DELETE: the API server answers with the
// object if that is not gone yet, otherwise with a status.
func Remains(answer []byte) error {
	var object struct {
		Metadata Deletion `json:"metadata"`
	}
	if err := Decode(answer, &object); err != nil {
		return fmt.Errorf("decode the answer to the deletion: %w", err)
	}
	return object.Metadata.Err()
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
	return markedError{err, ipam.ErrRefused}
}
