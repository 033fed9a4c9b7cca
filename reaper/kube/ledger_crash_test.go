package kube

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	k8stesting "k8s.io/client-go/testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// versioned makes a client refuse the update of another version of an object, as an API
// server does.
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

// interrupted calls before with the number of each write, from 0. If that returns an
// error, nothing is written.
type interrupted struct {
	corev1client.ConfigMapInterface
	writes atomic.Int64
	before func(n int) error
}

func (i *interrupted) Create(ctx context.Context, cm *corev1.ConfigMap, o metav1.CreateOptions) (*corev1.ConfigMap, error) {
	if err := i.interrupt(); err != nil {
		return nil, err
	}
	return i.ConfigMapInterface.Create(ctx, cm, o)
}

func (i *interrupted) Update(ctx context.Context, cm *corev1.ConfigMap, o metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	if err := i.interrupt(); err != nil {
		return nil, err
	}
	return i.ConfigMapInterface.Update(ctx, cm, o)
}

func (i *interrupted) interrupt() error {
	return i.before(int(i.writes.Add(1)) - 1)
}

var errKilled = apierrors.NewForbidden(configMaps, LedgerName, errors.New("killed"))

// wantEither checks that the stored ledger is whole, and that it has each entry as one of
// two ledgers has it: an entry of both is never lost, and no other time appears.
func wantEither(t *testing.T, client *fake.Clientset, before, after reaper.Ledger) {
	t.Helper()
	_, got, err := load(t, client)
	if err != nil {
		t.Fatal(err)
	}
	for n, shard := range got.Shards(reaper.LedgerShards) {
		was, is := before.Shards(reaper.LedgerShards)[n], after.Shards(reaper.LedgerShards)[n]
		if !shard.Equal(was) && !shard.Equal(is) {
			t.Errorf("shard %d has %d entries, and is neither that of the ledger before nor that of the one after", n, shard.Len())
		}
	}
}

// Promise 8. A run may be killed before each of its writes. Nothing that both ledgers have
// is lost, and the next run stores the whole.
func TestLedgerSurvivesARunThatIsKilledBeforeAWrite(t *testing.T) {
	small, big, other := ledgerOf(t, 0, 5), ledgerOf(t, 0, large), ledgerOf(t, large/2, large)
	saved := func(l reaper.Ledger) func(*testing.T) *fake.Clientset {
		return func(t *testing.T) *fake.Clientset {
			client := fake.NewClientset()
			save(t, client, l)
			return client
		}
	}
	for _, tt := range []struct {
		name          string
		client        func(*testing.T) *fake.Clientset
		before, after reaper.Ledger
		kills         []int // before the nth write, from 0
	}{
		{"small to small", saved(small), small, ledgerOf(t, 3, 5), []int{0}},
		{"small to large", saved(small), small, big, []int{0, 1, 15, 32}},
		{"large to large", saved(big), big, other, []int{0, 15, 31}},
		{"large to small", saved(big), big, small, []int{0, 15, 31}},
	} {
		for _, kill := range tt.kills {
			t.Run(fmt.Sprintf("%s, killed before write %d", tt.name, kill), func(t *testing.T) {
				client := versioned(tt.client(t))
				l, got, err := load(t, client)
				if err != nil || !got.Equal(tt.before) {
					t.Fatalf("Load = %d entries, %v, want %d", got.Len(), err, tt.before.Len())
				}
				l.maps = &interrupted{ConfigMapInterface: l.maps, before: func(n int) error {
					if n >= kill {
						return errKilled
					}
					return nil
				}}
				if err := l.Save(t.Context(), tt.after); !errors.Is(err, errKilled) {
					t.Fatalf("Save = %v, want it killed", err)
				}
				wantEither(t, client, tt.before, tt.after)
				if kill == 0 {
					wantStored(t, client, tt.before)
				}
				save(t, client, tt.after)
				wantStored(t, client, tt.after)
			})
		}
	}
}

// reload saves as a run does: after a conflict, it loads, changes what it finds, and saves.
func reload(ctx context.Context, l *Ledgers, have reaper.Ledger, change func(reaper.Ledger) reaper.Ledger) error {
	for range 4 {
		err := l.Save(ctx, change(have))
		if !errors.Is(err, reaper.ErrAgain) {
			return err
		}
		if have, err = l.Load(ctx); err != nil {
			return err
		}
	}
	return reaper.ErrAgain
}

// Promise 1, 8. Two runs add entries at the same time, and one of them may make the ledger
// large. What either of them saved is there in the end, whichever write the other one
// interrupts.
func TestTwoWritersLoseNothing(t *testing.T) {
	base, mine, theirs := ledgerOf(t, 0, 100), ledgerOf(t, 1000, 60), ledgerOf(t, 2000, 60)
	growth := ledgerOf(t, 100_000, large)
	for _, tt := range []struct {
		name               string
		base, mine, theirs reaper.Ledger
		at                 []int
	}{
		{"small", base, mine, theirs, []int{0}},
		{"large", base.Merge(growth), mine, theirs, []int{0, 13}},
		{"this one makes it large", base, growth, theirs, []int{0, 1, 13, 32}},
		{"the other one makes it large", base, mine, growth, []int{0}},
		{"both make it large", base, growth.Merge(mine), growth.Merge(theirs), []int{0, 1, 13, 32}},
	} {
		for _, at := range tt.at {
			t.Run(fmt.Sprintf("%s, the other one writes before write %d", tt.name, at), func(t *testing.T) {
				client := versioned(fake.NewClientset())
				save(t, client, tt.base)
				l, have, err := load(t, client)
				other, theirHave, theirErr := load(t, client)
				if err := errors.Join(err, theirErr); err != nil {
					t.Fatal(err)
				}
				l.maps = &interrupted{ConfigMapInterface: l.maps, before: func(n int) error {
					if n == at {
						return reload(t.Context(), other, theirHave, func(l reaper.Ledger) reaper.Ledger { return l.Merge(tt.theirs) })
					}
					return nil
				}}
				if err := reload(t.Context(), l, have, func(l reaper.Ledger) reaper.Ledger { return l.Merge(tt.mine) }); err != nil {
					t.Fatal(err)
				}
				wantStored(t, client, tt.base.Merge(tt.mine, tt.theirs))
			})
		}
	}
}

// Promise 1, 8. A run falls asleep while it makes the ledger large. Another one begins to do
// so, too, and the first one ends before the other one ends. Nothing of either is lost.
func TestTwoWritersMakeTheLedgerLargeAtTheSameTime(t *testing.T) {
	base, mine, theirs := ledgerOf(t, 0, 100), ledgerOf(t, 100_000, large), ledgerOf(t, 200_000, large)
	for _, tt := range []struct{ sleeps, wakes int }{{0, 1}, {2, 0}, {2, 1}, {13, 2}, {32, 1}} {
		t.Run(fmt.Sprintf("asleep before write %d until write %d of the other one", tt.sleeps, tt.wakes), func(t *testing.T) {
			client := versioned(fake.NewClientset())
			save(t, client, base)
			l, have, err := load(t, client)
			if err != nil {
				t.Fatal(err)
			}
			asleep, wake, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			var failed error
			l.maps = &interrupted{ConfigMapInterface: l.maps, before: func(n int) error {
				if n == tt.sleeps {
					close(asleep)
					<-wake
				}
				return nil
			}}
			go func() {
				defer close(done)
				failed = reload(t.Context(), l, have, func(l reaper.Ledger) reaper.Ledger { return l.Merge(mine) })
			}()
			select {
			case <-asleep:
			case <-done:
				t.Fatalf("it ended before: %v", failed)
			}
			other, have, err := load(t, client)
			if err != nil {
				t.Fatal(err)
			}
			end := sync.OnceValue(func() error {
				close(wake)
				<-done
				return failed
			})
			other.maps = &interrupted{ConfigMapInterface: other.maps, before: func(n int) error {
				if n == tt.wakes {
					return end()
				}
				return nil
			}}
			err = reload(t.Context(), other, have, func(l reaper.Ledger) reaper.Ledger { return l.Merge(theirs) })
			if err := errors.Join(err, end()); err != nil {
				t.Fatal(err)
			}
			wantStored(t, client, base.Merge(mine, theirs))
		})
	}
}

// Promise 1, 8. A run loaded the small ledger, and falls asleep in the middle of making it
// large. Others make it large meanwhile. No older entry of the first one comes back.
func TestWriterThatFellAsleepBringsNothingBack(t *testing.T) {
	base, growth := ledgerOf(t, 0, 100), ledgerOf(t, 100_000, large)
	for _, at := range []int{0, 1, 13, 32} {
		t.Run(strconv.Itoa(at), func(t *testing.T) {
			client := versioned(fake.NewClientset())
			save(t, client, base)
			asleep, _, err := load(t, client)
			if err != nil {
				t.Fatal(err)
			}
			asleep.maps = &interrupted{ConfigMapInterface: asleep.maps, before: func(n int) error {
				if n != at {
					return nil
				}
				save(t, client, ledgerOf(t, 50, 3)) // the others of base are gone
				other, have, err := load(t, client)
				if err != nil {
					return err
				}
				// Other writes of the first client go on meanwhile, so this one may have to try again.
				err = reload(t.Context(), other, have, func(reaper.Ledger) reaper.Ledger { return growth })
				if err != nil {
					t.Errorf("the other client could not save: %v", err)
				}
				return nil
			}}
			if err := asleep.Save(t.Context(), base.Merge(ledgerOf(t, 200_000, large))); !errors.Is(err, reaper.ErrAgain) {
				t.Errorf("Save = %v, want ErrAgain", err)
			}
			wantStored(t, client, growth)
		})
	}
}
