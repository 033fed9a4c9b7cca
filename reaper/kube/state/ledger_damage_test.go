package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		{"a part that never was", func(_ *testing.T, cm *corev1.ConfigMap) { cm.Data = map[string]string{partsKey: "x"} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := versioned(fake.NewClientset())
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

// Promise 2, 8. If a part of a ledger was changed or deleted, the whole ledger is damaged.
func TestDamagedPart(t *testing.T) {
	for name, damage := range map[string]func(*testing.T, *fake.Clientset, string){
		"deleted": func(t *testing.T, client *fake.Clientset, part string) { remove(t, client, part) },
		"empty": func(t *testing.T, client *fake.Clientset, part string) {
			edit(t, client, part, func(cm *corev1.ConfigMap) { cm.BinaryData = nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := largely(t)
			whole := ledgerOf(t, 0, large)
			save(t, client, whole)
			damage(t, client, strings.Fields(stored(t, client, LedgerName).Data[partsKey])[1])
			if _, got, err := load(t, client); !errors.Is(err, ledger.ErrDamaged) || got.Len() > 0 {
				t.Errorf("Load = %d entries, %v, want none and ErrLedgerDamaged", got.Len(), err)
			}
			save(t, client, whole)
			wantStored(t, client, whole)
			wantParts(t, client, 3)
		})
	}
}

// If the ConfigMap is deleted, every grace period begins again. What its parts had does not
// come back, and they are removed once the ledger may be large again.
func TestDeletedLedgerIsEmptyAndStaysSo(t *testing.T) {
	client := largely(t)
	save(t, client, ledgerOf(t, 0, large))
	remove(t, client, LedgerName)
	wantStored(t, client, ledger.Ledger{})
	want := ledgerOf(t, large, 1)
	save(t, client, want)
	wantStored(t, client, want)
	edit(t, client, LedgerName, func(cm *corev1.ConfigMap) { cm.Data = map[string]string{largeKey: "true"} })
	save(t, client, ledger.Ledger{})
	wantParts(t, client, 0)
}

// A ledger that does not fit into one ConfigMap is cut into parts, and no part is left once it
// is small again. If another client keeps its own data in the ConfigMap, a run does not remove it.
// Other ConfigMaps are not parts, even if their label says so.
func TestLargeLedgerHasPartsBesideTheDataOfOthers(t *testing.T) {
	client := largely(t)
	edit(t, client, LedgerName, func(cm *corev1.ConfigMap) {
		cm.Data["settings"], cm.BinaryData = "theirs", map[string][]byte{"icon": []byte("theirs")}
	})
	create(t, client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{LedgerLabel: "part"}}})
	for _, tt := range []struct{ entries, parts int }{{5, 0}, {large, 3}, {2 * large, 5}, {large, 3}, {1, 0}} {
		want := ledgerOf(t, tt.entries, tt.entries)
		save(t, client, want)
		wantStored(t, client, want)
		wantParts(t, client, tt.parts)
		cm := stored(t, client, LedgerName)
		if cm.Data["settings"] != "theirs" || !bytes.Equal(cm.BinaryData["icon"], []byte("theirs")) || cm.Data[largeKey] != "true" {
			t.Errorf("%d entries: data were lost: %v %v", tt.entries, cm.Data, cm.BinaryData)
		}
		stored(t, client, "other")
	}
}

// A ledger that could not be read may be intact, and does not count as damaged. No Save
// replaces it.
func TestLedgerThatCannotBeReadIsAnError(t *testing.T) {
	for _, failing := range []int{0, 1} { // the first ConfigMap, and a part
		client := largely(t)
		want := ledgerOf(t, 0, large)
		save(t, client, want)
		name := append([]string{LedgerName}, strings.Fields(stored(t, client, LedgerName).Data[partsKey])...)[failing]
		broken := true
		client.PrependReactor("get", "configmaps", func(a k8stesting.Action) (bool, runtime.Object, error) {
			get, ok := a.(k8stesting.GetActionImpl)
			return broken && ok && get.Name == name, nil, apierrors.NewForbidden(configMaps, name, errors.New("no"))
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
}

// Promises 2 and 6. A later version wrote the ledger, or began to. None of it counts, and no
// Save replaces any of it.
func TestLedgerOfALaterVersionIsNotReplaced(t *testing.T) {
	newer := func(t *testing.T, cm *corev1.ConfigMap) {
		plain := unzipped(t, cm)
		body := plain[:len(plain)-crc32.Size]
		body[0]++
		cm.BinaryData[ledgerKey] = zipped(t, binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body)))
	}
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *corev1.ConfigMap)
		says   string
	}{
		{"its form", newer, "it has version"},
		{"more parts", func(_ *testing.T, cm *corev1.ConfigMap) {
			cm.Data = merged(cm.Data, partsKey, strings.Repeat("part ", maxParts+1))
		}, "it has 17 parts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := versioned(fake.NewClientset())
			save(t, client, ledgerOf(t, 0, 100))
			edit(t, client, LedgerName, func(cm *corev1.ConfigMap) { tt.change(t, cm) })
			before := stored(t, client, LedgerName)
			l, got, err := load(t, client)
			if !errors.Is(err, ledger.ErrNewer) || errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Load: %v, want that a newer version wrote it, and %q", err, tt.says)
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
		})
	}
}
