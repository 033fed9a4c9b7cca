package state

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// Promise 2, 8. A damaged ledger counts as an empty one, and the next Save replaces it.
func TestDamagedLedger(t *testing.T) {
	setData := func(data []byte) func(*testing.T, *corev1.ConfigMap) {
		return func(_ *testing.T, cm *corev1.ConfigMap) { cm.BinaryData[ledgerKey] = data }
	}
	plainly := func(change func([]byte) []byte) func(*testing.T, *corev1.ConfigMap) {
		return func(t *testing.T, cm *corev1.ConfigMap) {
			plain := change(unzipped(t, cm))
			cm.BinaryData[ledgerKey] = zipped(t, plain)
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *corev1.ConfigMap)
	}{
		{"no gzip", setData([]byte("hello"))},
		{"cut off", func(_ *testing.T, cm *corev1.ConfigMap) {
			data := cm.BinaryData[ledgerKey]
			cm.BinaryData[ledgerKey] = data[:len(data)-9]
		}},
		{"garbage behind it", func(_ *testing.T, cm *corev1.ConfigMap) {
			cm.BinaryData[ledgerKey] = append(cm.BinaryData[ledgerKey], "garbage"...)
		}},
		{"a bomb", plainly(func(plain []byte) []byte { return append(make([]byte, 64<<20), plain...) })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := fake.NewClientset()
			whole := ledgerOf(t, 0, 100)
			save(t, client, whole)
			edit(t, client, LedgerName, func(cm *corev1.ConfigMap) { tt.change(t, cm) })
			_, got, err := load(t, client)
			if !errors.Is(err, ledger.ErrDamaged) || !strings.HasPrefix(err.Error(), "ConfigMap "+LedgerName+": ") || got.Len() > 0 {
				t.Errorf("Load = %d entries, %v, want none and that %s is damaged", got.Len(), err, LedgerName)
			}
			save(t, client, whole)
			wantStored(t, client, whole)
		})
	}
}

// If the ConfigMap is deleted, every grace period begins again.
func TestDeletedLedgerIsEmpty(t *testing.T) {
	client := fake.NewClientset()
	save(t, client, ledgerOf(t, 0, 3))
	remove(t, client, LedgerName)
	wantStored(t, client, ledger.Ledger{})
	want := ledgerOf(t, 3, 1)
	save(t, client, want)
	wantStored(t, client, want)
}

// A ledger that could not be read may be intact, and does not count as damaged. No Save
// replaces it.
func TestLedgerThatCannotBeReadIsAnError(t *testing.T) {
	client := fake.NewClientset()
	want := ledgerOf(t, 0, 100)
	save(t, client, want)
	broken := true
	client.PrependReactor("get", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		return broken, nil, apierrors.NewForbidden(configMaps, LedgerName, errors.New("no"))
	})
	l, got, err := load(t, client)
	if err == nil || errors.Is(err, ledger.ErrDamaged) || got.Len() != 0 {
		t.Errorf("Load = %d entries, %v, want none and an error that is no damage", got.Len(), err)
	}
	if err := l.Save(t.Context(), ledgerOf(t, 0, 1)); !errors.Is(err, ipam.ErrAgain) {
		t.Errorf("Save = %v, want ErrAgain", err)
	}
	broken = false
	wantStored(t, client, want)
}

// Promises 2 and 6. A later version wrote the ledger. It does not count, and no Save replaces it.
func TestLedgerOfALaterVersionIsNotReplaced(t *testing.T) {
	client := fake.NewClientset()
	save(t, client, ledgerOf(t, 0, 100))
	edit(t, client, LedgerName, func(cm *corev1.ConfigMap) {
		plain := unzipped(t, cm)
		body := plain[:len(plain)-crc32.Size]
		body[0]++
		cm.BinaryData[ledgerKey] = zipped(t, binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body)))
	})
	before := stored(t, client, LedgerName)
	l, got, err := load(t, client)
	if !errors.Is(err, ledger.ErrNewer) || errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "it has version") {
		t.Errorf("Load: %v, want that a newer version wrote it", err)
	}
	if got.Len() > 0 {
		t.Errorf("Load = %d entries, want none", got.Len())
	}
	if err := l.Save(t.Context(), ledgerOf(t, 7, 3)); !errors.Is(err, ipam.ErrAgain) {
		t.Errorf("Save: %v, want ErrAgain", err)
	}
	if diff := cmp.Diff(before, stored(t, client, LedgerName)); diff != "" {
		t.Errorf("the ConfigMap (-want +got):\n%s", diff)
	}
}
