package state

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	k8stesting "k8s.io/client-go/testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// versioned makes a client refuse updates of another version of an object, as an API server
// does.
func versioned(client *fake.Clientset) *fake.Clientset {
	version := 0
	write := func(a k8stesting.Action) (bool, runtime.Object, error) {
		cm := a.(k8stesting.CreateAction).GetObject().(*corev1.ConfigMap)
		if have, err := client.Tracker().Get(a.GetResource(), ns, cm.Name); err == nil && a.GetVerb() == "update" {
			if have.(*corev1.ConfigMap).ResourceVersion != cm.ResourceVersion {
				return true, nil, apierrors.NewConflict(configMaps, cm.Name, errors.New("modified"))
			}
		}
		version++
		cm.ResourceVersion = strconv.Itoa(version)
		return false, nil, nil
	}
	client.PrependReactor("create", "configmaps", write)
	client.PrependReactor("update", "configmaps", write)
	return client
}

// interrupted calls before with the number of each write, from 0. If before returns an error,
// nothing is written.
type interrupted struct {
	corev1client.ConfigMapInterface
	writes int
	before func(ctx context.Context, n int) error
}

func (i *interrupted) Create(ctx context.Context, cm *corev1.ConfigMap, o metav1.CreateOptions) (*corev1.ConfigMap, error) {
	if err := i.interrupt(ctx); err != nil {
		return nil, err
	}
	return i.ConfigMapInterface.Create(ctx, cm, o)
}

func (i *interrupted) Update(ctx context.Context, cm *corev1.ConfigMap, o metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	if err := i.interrupt(ctx); err != nil {
		return nil, err
	}
	return i.ConfigMapInterface.Update(ctx, cm, o)
}

func (i *interrupted) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	if err := i.interrupt(ctx); err != nil {
		return err
	}
	return i.ConfigMapInterface.Delete(ctx, name, o)
}

func (i *interrupted) interrupt(ctx context.Context) error {
	i.writes++
	return i.before(ctx, i.writes-1)
}

var errKilled = apierrors.NewForbidden(configMaps, LedgerName, errors.New("killed"))

// Promise 8. A run may be killed before each of its writes. The stored ledger is the old or the
// new one, and the next run stores its own and leaves no part behind.
func TestLedgerSurvivesARunThatIsKilledBeforeAWrite(t *testing.T) {
	small, big, other := ledgerOf(t, 0, 5), ledgerOf(t, 0, large), ledgerOf(t, large/2, large)
	for _, tt := range []struct {
		name          string
		before, after ledger.Ledger
		head          int // the write of the first ConfigMap, from 0
		writes        int
	}{
		{"small to small", small, ledgerOf(t, 3, 5), 0, 1},
		{"small to large", small, big, 3, 4},
		{"large to large", big, other, 3, 7},
		{"large to small", big, small, 0, 4},
	} {
		for kill := range tt.writes {
			t.Run(fmt.Sprintf("%s, killed before write %d", tt.name, kill), func(t *testing.T) {
				client := largely(t)
				save(t, client, tt.before)
				l, _, err := load(t, client)
				if err != nil {
					t.Fatal(err)
				}
				l.maps = &interrupted{ConfigMapInterface: l.maps, before: func(_ context.Context, n int) error {
					if n >= kill {
						return errKilled
					}
					return nil
				}}
				if err := l.Save(t.Context(), tt.after); !errors.Is(err, errKilled) {
					t.Fatalf("Save = %v, want it killed", err)
				} else if left := errors.Is(err, ledger.ErrLeft); left != (kill > tt.head) {
					t.Errorf("Save = %v, which says that the ledger is saved: %v", err, left)
				}
				if kill <= tt.head {
					wantStored(t, client, tt.before)
				} else {
					wantStored(t, client, tt.after)
				}
				save(t, client, other)
				wantStored(t, client, other)
				wantParts(t, client, 3)
			})
		}
	}
}

// reload saves as a run does: after a conflict, it loads, changes what it finds, and saves.
func reload(ctx context.Context, l *Ledgers, have ledger.Ledger, change func(ledger.Ledger) ledger.Ledger) error {
	for range 4 {
		err := l.Save(ctx, change(have))
		if !errors.Is(err, ipam.ErrAgain) {
			return err
		}
		if have, err = l.Load(ctx); err != nil {
			return err
		}
	}
	return ipam.ErrAgain
}

// Promise 1, 8. Two runs add entries at the same time. In the end, everything that either saved
// is there, no matter which write the other one interrupts.
func TestTwoWritersLoseNothing(t *testing.T) {
	base, mine, theirs := ledgerOf(t, 0, 100), ledgerOf(t, 1000, 60), ledgerOf(t, 2000, 60)
	growth := ledgerOf(t, 100_000, large)
	for _, tt := range []struct {
		name               string
		base, mine, theirs ledger.Ledger
		writes             int
		parts              int
	}{
		{"small", base, mine, theirs, 1, 0},
		{"large", base.Merge(growth), mine, theirs, 5, 2},
		{"this one makes it large", base, growth, theirs, 3, 2},
		{"the other one makes it large", base, mine, growth, 1, 2},
		{"both make it large", base, growth.Merge(mine), growth.Merge(theirs), 3, 2},
	} {
		for at := range tt.writes {
			t.Run(fmt.Sprintf("%s, the other one writes before write %d", tt.name, at), func(t *testing.T) {
				client := largely(t)
				save(t, client, tt.base)
				l, have, err := load(t, client)
				other, theirHave, theirErr := load(t, client)
				if err := errors.Join(err, theirErr); err != nil {
					t.Fatal(err)
				}
				add := func(mine ledger.Ledger) func(ledger.Ledger) ledger.Ledger {
					return func(l ledger.Ledger) ledger.Ledger { return l.Merge(mine) }
				}
				l.maps = &interrupted{ConfigMapInterface: l.maps, before: func(_ context.Context, n int) error {
					if n == at {
						return reload(t.Context(), other, theirHave, add(tt.theirs))
					}
					return nil
				}}
				if err := reload(t.Context(), l, have, add(tt.mine)); err != nil {
					t.Fatal(err)
				}
				wantStored(t, client, tt.base.Merge(tt.mine).Merge(tt.theirs))
				save(t, client, growth) // it finds parts left by an interrupted save
				wantStored(t, client, growth)
				wantParts(t, client, 3)
			})
		}
	}
}

// Promise 8. While a run reads the parts, another one replaces them. The run reads the other
// one's ledger.
func TestPartsAreReplacedWhileTheyAreRead(t *testing.T) {
	before, after := ledgerOf(t, 0, large), ledgerOf(t, large, large)
	client := largely(t)
	save(t, client, before)
	l := newLedgers(client)
	gets := 0
	l.maps = replaced{l.maps, func() {
		if gets++; gets == 2 { // it has read the first ConfigMap
			save(t, client, after)
		}
	}}
	if got, err := l.Load(t.Context()); err != nil || !got.Equal(after) {
		t.Errorf("Load = %d entries, %v, want the %d of the other run", got.Len(), err, after.Len())
	}
}

// replaced calls a function before each read.
type replaced struct {
	corev1client.ConfigMapInterface
	before func()
}

func (r replaced) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.ConfigMap, error) {
	r.before()
	return r.ConfigMapInterface.Get(ctx, name, o)
}
