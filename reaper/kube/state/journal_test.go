package state

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// Journals are tested on a real API server; these tests cover answers that one cannot be made
// to give.

// writeJournal writes a record to an API server that answers a create with the changed object.
func writeJournal(t *testing.T, change func(*corev1.ConfigMap) error) (*fake.Clientset, error) {
	t.Helper()
	client := fake.NewClientset()
	client.PrependReactor("create", "configmaps", func(a k8stesting.Action) (bool, runtime.Object, error) {
		cm := a.(k8stesting.CreateActionImpl).Object.(*corev1.ConfigMap).DeepCopy()
		err := change(cm)
		return true, cm, err
	})
	records := []ipam.Record{{Backend: "b", Pool: "u", Key: "k", Stored: []byte(`{}`)}}
	return client, NewJournals(client.CoreV1(), ns, journal.Retention{}).Write(t.Context(), journal.Run{ID: "Run-1"}, records)
}

// Promise 10: a reader might not find what an admission webhook changed.
func TestPartThatIsStoredOtherwiseIsNoJournal(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*corev1.ConfigMap)
		ok     bool
	}{
		{"as it is", func(*corev1.ConfigMap) {}, true},
		{"no labels", func(cm *corev1.ConfigMap) { cm.Labels = nil }, false},
		{"another run", func(cm *corev1.ConfigMap) { cm.Labels[RunLabel] = "run-1" }, false},
		{"no data", func(cm *corev1.ConfigMap) { cm.BinaryData = nil }, false},
		{"other data", func(cm *corev1.ConfigMap) { cm.BinaryData[journalKey][12] ^= 1 }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := writeJournal(t, func(cm *corev1.ConfigMap) error { tt.change(cm); return nil })
			if (err == nil) != tt.ok {
				t.Errorf("Write = %v, want success: %v", err, tt.ok)
			}
			if !tt.ok && !strings.Contains(err.Error(), "ip-reaper-journal-run-1-1-1") {
				t.Errorf("%v does not name the part", err)
			}
		})
	}
}

// Only a ConfigMap as made by Write may be deleted.
func TestOnlyAPartAsItWasWrittenIsOwn(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*corev1.ConfigMap)
		want   string // empty for a part
	}{
		{"as it is", func(*corev1.ConfigMap) {}, ""},
		{"another label and an annotation", func(cm *corev1.ConfigMap) { cm.Labels["team"], cm.Annotations = "net", nil }, ""},
		{"another name", func(cm *corev1.ConfigMap) { cm.Name = "settings" }, "belongs into ip-reaper-journal-run-1-1-1"},
		{"no run", func(cm *corev1.ConfigMap) { delete(cm.Labels, RunLabel) }, `part of run "Run-1"`},
		{"another run", func(cm *corev1.ConfigMap) {
			cm.Name, cm.Labels[RunLabel] = "ip-reaper-journal-run-2-1-1", "run-2"
		}, `part of run "Run-1"`},
		{"no data", func(cm *corev1.ConfigMap) { cm.BinaryData = nil }, "damaged"},
		{"other data", func(cm *corev1.ConfigMap) { cm.BinaryData[journalKey] = zipped(t, []byte(`{"kind":"Settings"}`)) }, "damaged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var cm *corev1.ConfigMap
			if _, err := writeJournal(t, func(written *corev1.ConfigMap) error {
				cm = written.DeepCopy()
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			tt.change(cm)
			err := readStored(cm).Err
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q", err, tt.want)
			}
		})
	}
}

// What a run takes of the retention's limits is that of all its parts.
func TestRunIsAsLargeAsItsParts(t *testing.T) {
	part := func(run string, size int) storedPart {
		return storedPart{Summary: journal.Summary{Run: journal.Run{ID: run}}, size: size}
	}
	runs, _, _ := byRun([]storedPart{part("run-1", 10), part("run-2", 1), part("run-1", 20)})
	got := make(map[string]journal.Stored)
	for _, r := range runs {
		got[r.Run] = r
	}
	if diff := cmp.Diff(map[string]journal.Stored{
		"run-1": {Run: "run-1", Objects: 2, Size: 30}, "run-2": {Run: "run-2", Objects: 1, Size: 1},
	}, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}

func TestUnzipStopsAtTheLimit(t *testing.T) {
	data := zip(bytes.Repeat([]byte("x"), 1<<20), gzip.DefaultCompression)
	for _, limit := range []int64{0, 10, 1 << 20, 2 << 20} {
		got, err := unzip(data, limit)
		if err != nil || int64(len(got)) != min(limit, 1<<20) {
			t.Errorf("%d bytes, %v, want at most %d", len(got), err, limit)
		}
	}
}
