package kube_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// equal fails the test unless it got what it wants.
func equal[T any](t *testing.T, what string, got, want T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
