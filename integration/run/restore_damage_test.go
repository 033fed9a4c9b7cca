package run_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/memory"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/world"
)

// journalKey is where a ConfigMap has its part of a journal.
const journalKey = "journal.json.gz"

// lost is how many records the second of three parts has.
const lost = 3

// split makes the only part of the journal three, as of a run that released more, and
// returns the second one.
func split(w *world.World) corev1.ConfigMap {
	w.Helper()
	client := w.Cluster.Kube.CoreV1().ConfigMaps(home)
	stored, err := w.Memory.JournalParts(w.Context())
	w.Must(err)
	r, err := gzip.NewReader(bytes.NewReader(stored[0].BinaryData[journalKey]))
	w.Must(err)
	text, err := io.ReadAll(r)
	w.Must(err)
	var part map[string]json.RawMessage
	var all []json.RawMessage
	w.Must(json.Unmarshal(text, &part))
	w.Must(json.Unmarshal(part["records"], &all))
	w.Must(client.Delete(w.Context(), stored[0].Name, metav1.DeleteOptions{}))
	var maps [3]corev1.ConfigMap
	for i, some := range [][]json.RawMessage{all[:4], all[4 : 4+lost], all[4+lost:]} {
		records, err := json.Marshal(some)
		w.Must(err)
		part["part"], part["parts"], part["records"] = json.RawMessage(fmt.Sprint(i+1)), json.RawMessage("3"), records
		text, err := json.Marshal(part)
		w.Must(err)
		maps[i] = corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: strings.TrimSuffix(stored[0].Name, "1") + fmt.Sprint(i+1), Labels: stored[0].Labels},
			BinaryData: map[string][]byte{journalKey: memory.Zip(text)},
		}
		_, err = client.Create(w.Context(), &maps[i], metav1.CreateOptions{})
		w.Must(err)
	}
	return maps[1]
}

// What can be read of a journal is put back, and what is lost is named, in the report
// as well (promises 2 and 10). run/kube has the ways to damage a part.
func TestDamagedJournalRestoresWhatCanBeRead(t *testing.T) {
	w, id := afterRelease(t)
	second := split(w)
	client := w.Cluster.Kube.CoreV1().ConfigMaps(home)
	w.Must(client.Delete(t.Context(), second.Name, metav1.DeleteOptions{}))
	w.Must(w.Memory.Unlock(t.Context()))
	result := w.Ends(reap.ExitPartial, w.Starts("restore", world.ReleaseNow, "--run="+id))
	r := w.RestoreReportOf(result)
	if want := (world.RestoreSummary{Records: world.Records - lost, Restored: world.Records - lost}); r.Summary != want {
		t.Errorf("%+v, want %+v", r.Summary, want)
	}
	const says = "write 1 lacks part 2 of 3"
	if !strings.Contains(strings.Join(r.Warnings, "\n"), says) || !strings.Contains(result.Stderr, says) {
		t.Errorf("warnings %q, and it says %s, want %q", r.Warnings, result.Stderr, says)
	}
	w.WantInUse()

	_, err := client.Create(t.Context(), &second, metav1.CreateOptions{})
	w.Must(err)
	w.Restore(id)
	w.WantStores("after the restoration by the whole journal", w.Before)
}
