package kube

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// What a journal goes through in a store is proved on a real API server; here is
// what that one cannot be made to answer.

// writeJournal writes a record to an API server that answers a create with what
// change makes of it.
func writeJournal(t *testing.T, change func(*corev1.ConfigMap) error) (*fake.Clientset, error) {
	t.Helper()
	client := fake.NewClientset()
	client.PrependReactor("create", "configmaps", func(a k8stesting.Action) (bool, runtime.Object, error) {
		cm := a.(k8stesting.CreateActionImpl).Object.(*corev1.ConfigMap).DeepCopy()
		err := change(cm)
		return true, cm, err
	})
	records := []reaper.Record{{Backend: "b", Pool: "u", Key: "k", Stored: []byte(`{}`)}}
	return client, NewJournals(client.CoreV1(), ns, 0).Write(t.Context(), reaper.JournalRun{ID: "Run-1"}, records)
}

// Promise 10: what an admission webhook changes may not be found by a reader.
func TestPartThatIsStoredOtherwiseIsNoJournal(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*corev1.ConfigMap)
		ok     bool
	}{
		{"as it is", func(*corev1.ConfigMap) {}, true},
		{"another label", func(cm *corev1.ConfigMap) { cm.Labels["team"] = "net" }, true},
		{"no labels", func(cm *corev1.ConfigMap) { cm.Labels = nil }, false},
		{"another run", func(cm *corev1.ConfigMap) { cm.Labels[RunLabel] = "run-1" }, false},
		{"no data", func(cm *corev1.ConfigMap) { cm.BinaryData = nil }, false},
		{"other data", func(cm *corev1.ConfigMap) { cm.BinaryData[journalKey][12] ^= 1 }, false},
		{"nothing", func(cm *corev1.ConfigMap) { *cm = corev1.ConfigMap{} }, false},
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

// What was refused for good is not there: nothing is asked about it.
func TestRefusedPartIsNotLookedFor(t *testing.T) {
	client, err := writeJournal(t, func(cm *corev1.ConfigMap) error {
		return apierrors.NewForbidden(configMaps, cm.Name, errors.New("no"))
	})
	if !apierrors.IsForbidden(err) {
		t.Errorf("Write = %v, want that it is forbidden", err)
	}
	if n := len(client.Actions()); n != 1 {
		t.Errorf("%d requests, want one", n)
	}
}

func TestUnzipStopsAtTheLimit(t *testing.T) {
	data, err := zip(bytes.Repeat([]byte("x"), 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{0, 10, 1 << 20, 2 << 20} {
		got, err := unzip(data, limit)
		if err != nil || int64(len(got)) != min(limit, 1<<20) {
			t.Errorf("%d bytes, %v, want at most %d", len(got), err, limit)
		}
	}
}
