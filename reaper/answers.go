package reaper

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Transient wraps an error of a request to the API server in ErrAgain where the
// request may do better later: the connection failed, somebody else wrote, the
// server is busy or broken. Other errors, and nil, are returned as they are.
func Transient(err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil, errors.Is(err, ErrAgain):
		return err
	case !errors.As(err, &status):
		return fmt.Errorf("%w: %w", ErrAgain, err)
	}
	code := status.Status().Code
	if code == http.StatusConflict || code == http.StatusTooManyRequests || code >= http.StatusInternalServerError {
		return fmt.Errorf("%w: %w", ErrAgain, err)
	}
	return err
}

// Gone reports whether the API server itself answered that it has no such
// object. Another 404, such as that of a proxy on the way or of a server that
// does not know the resource, is not from the store: client-go marks it as an
// unexpected response.
func Gone(err error, resource, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == resource && details.Name == name && !apierrors.IsUnexpectedServerError(err)
}
