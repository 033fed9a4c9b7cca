package kube

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A failingGet fails to read one ConfigMap.
type failingGet struct {
	corev1client.ConfigMapInterface
	name string
}

// Get implements corev1client.ConfigMapInterface.
func (f failingGet) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.ConfigMap, error) {
	if name == f.name {
		return nil, apierrors.NewForbidden(configMaps, name, errors.New("for a moment"))
	}
	return f.ConfigMapInterface.Get(ctx, name, o)
}

// Promise 8. A Load that failed in part has read new versions. The next Save does not replace
// what another client has written.
func TestSaveAfterALoadThatFailedInPartReplacesNothing(t *testing.T) {
	client := versioned(fake.NewClientset())
	base, theirs := ledgerOf(t, 100_000, large), ledgerOf(t, 1000, 200)
	save(t, client, base)
	run, have, err := load(t, client)
	if err != nil {
		t.Fatal(err)
	}
	save(t, client, base.Merge(theirs)) // a restore, or another run
	mine := have.Merge(ledgerOf(t, 5000, 200))
	if err := run.Save(t.Context(), mine); !errors.Is(err, reaper.ErrAgain) {
		t.Fatalf("Save = %v", err)
	}
	maps := run.maps
	run.maps = failingGet{maps, shardName(4)}
	if _, err := run.Load(t.Context()); err == nil {
		t.Fatal("no error")
	}
	run.maps = maps
	// The run goes on, and saves once more what it had.
	err = reload(t.Context(), run, mine, func(l reaper.Ledger) reaper.Ledger { return l.Merge(ledgerOf(t, 7000, 1)) })
	if err != nil {
		t.Fatal(err)
	}
	_, got, err := load(t, client)
	if err != nil {
		t.Fatal(err)
	}
	want := base.Merge(theirs)
	if !got.Merge(want).Equal(got) {
		t.Errorf("entries of the other client are lost: %d, want at least %d", got.Len(), want.Len())
	}
}
