package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Promise 7. Only an answer below 500, or no connection, proves that a write was not carried out.
func TestUnsure(t *testing.T) {
	refused := fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{internal, true}, {apierrors.NewTimeoutError("slow", 1), true}, {errConnection, true}, {context.Canceled, true},
		{conflict, false}, {tooMany, false}, {forbidden, false}, {invalid, false}, {refused, false},
	} {
		got := Unsure(Transient(tt.err))
		if errors.Is(got, ipam.ErrLost) != tt.want || !errors.Is(got, tt.err) || got.Error() != tt.err.Error() {
			t.Errorf("Unsure(%v) = %v, want ErrLost in it: %v", tt.err, got, tt.want)
		}
	}
	if err := Unsure(nil); err != nil {
		t.Errorf("Unsure(nil) = %v", err)
	}
}

func TestTransient(t *testing.T) {
	timeout := apierrors.NewTimeoutError("slow", 1)
	unavailable := apierrors.NewServiceUnavailable("starting")
	teapot := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusTeapot}}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{conflict, true}, {tooMany, true}, {internal, true}, {timeout, true}, {unavailable, true},
		{errConnection, true}, {context.DeadlineExceeded, true}, {fmt.Errorf("get: %w", conflict), true},
		{ipam.ErrAgain, true}, {fmt.Errorf("%w: later", ipam.ErrAgain), true},
		{forbidden, false}, {notFound, false}, {invalid, false}, {badRequest, false}, {tooOld, false},
		{teapot, false}, {&apierrors.StatusError{}, false},
	} {
		got := Transient(tt.err)
		if errors.Is(got, ipam.ErrAgain) != tt.want || !errors.Is(got, tt.err) {
			t.Errorf("Transient(%v) = %v, want ErrAgain in it: %v", tt.err, got, tt.want)
		}
		// The engine asks again after every error but ErrRefused.
		if got := Answered(tt.err); errors.Is(got, ipam.ErrAgain) != tt.want || errors.Is(got, ipam.ErrRefused) == tt.want || !errors.Is(got, tt.err) {
			t.Errorf("Answered(%v) = %v, want ErrAgain in it: %v, and else ErrRefused", tt.err, got, tt.want)
		}
	}
	if err := errors.Join(Transient(nil), Answered(nil)); err != nil {
		t.Errorf("of no error: %v", err)
	}
}
