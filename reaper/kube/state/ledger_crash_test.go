package state

import (
	"context"
	"errors"
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

// interrupted calls a function before its first update.
type interrupted struct {
	corev1client.ConfigMapInterface
	before func() error
}

func (i *interrupted) Update(ctx context.Context, cm *corev1.ConfigMap, o metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	if before := i.before; before != nil {
		i.before = nil
		if err := before(); err != nil {
			return nil, err
		}
	}
	return i.ConfigMapInterface.Update(ctx, cm, o)
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
// is there.
func TestTwoWritersLoseNothing(t *testing.T) {
	base, mine, theirs := ledgerOf(t, 0, 100), ledgerOf(t, 1000, 60), ledgerOf(t, 2000, 60)
	client := versioned(fake.NewClientset())
	save(t, client, base)
	l, have, err := load(t, client)
	other, theirHave, theirErr := load(t, client)
	if err := errors.Join(err, theirErr); err != nil {
		t.Fatal(err)
	}
	add := func(mine ledger.Ledger) func(ledger.Ledger) ledger.Ledger {
		return func(l ledger.Ledger) ledger.Ledger { return l.Merge(mine) }
	}
	l.maps = &interrupted{l.maps, func() error { return reload(t.Context(), other, theirHave, add(theirs)) }}
	if err := reload(t.Context(), l, have, add(mine)); err != nil {
		t.Fatal(err)
	}
	wantStored(t, client, base.Merge(mine).Merge(theirs))
}
