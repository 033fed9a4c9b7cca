package state

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// allMaps returns the ConfigMaps by name.
func allMaps(t *testing.T, client *fake.Clientset) map[string]corev1.ConfigMap {
	t.Helper()
	list, err := client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]corev1.ConfigMap)
	for _, cm := range list.Items {
		all[cm.Name] = cm
	}
	return all
}

// Promises 2 and 6. A later version wrote the ledger, or began to. Nothing of it counts, and
// no Save replaces any of it.
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
		}, "it has 9 parts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := versioned(fake.NewClientset())
			save(t, client, ledgerOf(t, 0, 100))
			edit(t, client, LedgerName, func(cm *corev1.ConfigMap) { tt.change(t, cm) })
			before := allMaps(t, client)
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
			if diff := cmp.Diff(before, allMaps(t, client)); diff != "" {
				t.Errorf("ConfigMaps (-want +got):\n%s", diff)
			}
		})
	}
}
