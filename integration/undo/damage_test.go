package undo_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// journalKey is where a ConfigMap has its part of a journal.
const journalKey = "journal.json.gz"

// lost is how many records the second of three parts has.
const lost = 3

// split has the only part of the journal be three, as of a run that released more,
// and returns their names.
func (s *scene) split() []string {
	s.Helper()
	maps := s.Cluster.Kube.CoreV1().ConfigMaps(home)
	whole := s.journalParts()[0]
	var part map[string]json.RawMessage
	var all []json.RawMessage
	s.must(json.Unmarshal(unzip(s, whole.BinaryData[journalKey]), &part))
	s.must(json.Unmarshal(part["records"], &all))
	s.must(maps.Delete(s.Context(), whole.Name, metav1.DeleteOptions{}))
	var names []string
	for i, some := range [][]json.RawMessage{all[:4], all[4 : 4+lost], all[4+lost:]} {
		records, err := json.Marshal(some)
		s.must(err)
		part["part"], part["parts"], part["records"] = json.RawMessage(fmt.Sprint(i+1)), json.RawMessage("3"), records
		text, err := json.Marshal(part)
		s.must(err)
		cm := corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: strings.TrimSuffix(whole.Name, "1") + fmt.Sprint(i+1), Labels: whole.Labels},
			BinaryData: map[string][]byte{journalKey: zip(s, text)},
		}
		_, err = maps.Create(s.Context(), &cm, metav1.CreateOptions{})
		s.must(err)
		names = append(names, cm.Name)
	}
	return names
}

// What can be read of a journal is put back, and what is lost is named, in the report
// as well (promises 2 and 10).
func TestDamagedJournalRestoresWhatCanBeRead(t *testing.T) {
	w, id := released(t)
	names := w.split()
	maps := w.Cluster.Kube.CoreV1().ConfigMaps(home)
	second, err := maps.Get(t.Context(), names[1], metav1.GetOptions{})
	w.must(err)
	for _, tt := range []struct {
		name   string
		damage func(cm *corev1.ConfigMap) // nil deletes it
		want   string
	}{
		{"replaced", func(cm *corev1.ConfigMap) { cm.BinaryData[journalKey] = []byte("junk") }, names[1]},
		{"of a newer version", func(cm *corev1.ConfigMap) {
			cm.BinaryData[journalKey] = zip(w.scene, []byte(`{"kind":"ReapJournal","version":2}`))
		}, "use the newer ip-reaper"},
		{"deleted", nil, "write 1 lacks part 2 of 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.T = t
			w.put(w.end)
			if tt.damage == nil {
				w.must(maps.Delete(t.Context(), names[1], metav1.DeleteOptions{}))
			} else {
				cm := second.DeepCopy()
				tt.damage(cm)
				cm.ResourceVersion = ""
				_, err := maps.Update(t.Context(), cm, metav1.UpdateOptions{})
				w.must(err)
			}
			w.unlock()
			result := w.wait(w.start("restore", releaseNow, "--run="+id), reap.ExitPartial)
			r := w.reportOf(result)
			if want := (counts{Records: records - lost, Restored: records - lost}); r.Summary != want {
				t.Errorf("%+v, want %+v", r.Summary, want)
			}
			if !strings.Contains(strings.Join(r.Warnings, "\n"), tt.want) || !strings.Contains(result.Stderr, tt.want) {
				t.Errorf("warnings %q, and it says %s, want %q", r.Warnings, result.Stderr, tt.want)
			}
			w.wantInUse()
		})
	}
	w.T = t
	second.ResourceVersion, second.UID = "", ""
	_, err = maps.Create(t.Context(), second, metav1.CreateOptions{})
	w.must(err)
	w.restore(id)
	w.wantStores("after the restoration by the whole journal", w.before)
}
