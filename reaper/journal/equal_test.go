package journal_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// equal compares what a test got with what it wants.
func equal[T any](t *testing.T, what string, got, want T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
