package run_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// A journalFixture is a namespace without a journal, and the reaper's client, which goes through a
// proxy.
type journalFixture struct {
	*fixture
	reaper kubernetes.Interface
	proxy  *proxy.Proxy
}

func newJournalFixture(t *testing.T) *journalFixture {
	t.Helper()
	f := newFixture(t)
	client, p := f.watched()
	return &journalFixture{f, client, p}
}

// journals returns the journals as a new run opens them.
func (f *journalFixture) journals(keep int) *state.Journals {
	return state.NewJournals(f.reaper.CoreV1(), home, journal.Retention{Runs: keep})
}

// run returns a run that writes journals.
func run(id string) journal.Run {
	return journal.Run{ID: id, StartedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Version: "v1", Cluster: "https://cluster"}
}

// records returns n records that gzip cannot make much smaller than size bytes each.
func records(n, size int) []ipam.Record {
	all, text := make([]ipam.Record, n), noise()
	for i := range all {
		start := i * size % (len(text) - size)
		all[i] = ipam.Record{
			Backend: "whereabouts", Pool: "kube-system/10.0.0.0-8", Key: fmt.Sprint(i), IP: "10.0.0.1",
			Stored: []byte(`{"z":"` + text[start:start+size] + `","a":18446744073709551615,"a":"\u003c"}`),
		}
	}
	return all
}

// noise returns text without a pattern.
var noise = sync.OnceValue(func() string {
	text, state := make([]byte, 4<<20), uint32(1)
	for i := range text {
		state = state*1664525 + 1013904223
		text[i] = "<>&ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012345678"[state>>26]
	}
	return string(text)
})

// write writes the journal of a run, with some more records each time.
func (f *journalFixture) write(id string, keep int, writes ...[]ipam.Record) *state.Journals {
	f.Helper()
	j := f.journals(keep)
	for _, r := range writes {
		if err := j.Write(f.Context(), run(id), r); err != nil {
			f.Fatal(err)
		}
	}
	return j
}

// stored returns all ConfigMaps of journals, by name without the common prefix.
func (f *journalFixture) stored() map[string]corev1.ConfigMap {
	f.Helper()
	list, err := f.Kube.CoreV1().ConfigMaps(home).List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	all := map[string]corev1.ConfigMap{}
	for _, cm := range list.Items {
		if name, ok := strings.CutPrefix(cm.Name, state.JournalName+"-"); ok {
			all[name] = cm
		}
	}
	return all
}

// wantStored fails the test unless stored has exactly these names.
func (f *journalFixture) wantStored(want ...string) {
	f.Helper()
	got := f.stored()
	for _, name := range want {
		if _, ok := got[name]; !ok {
			f.Errorf("%s is missing", name)
		}
		delete(got, name)
	}
	for name := range got {
		f.Errorf("%s is there", name)
	}
}

// wantRead fails the test unless a run's journal is intact and has the records.
func (f *journalFixture) wantRead(id string, want []ipam.Record) {
	f.Helper()
	got, err := f.journals(1).Read(f.Context(), id)
	if err != nil {
		f.Errorf("read %s: %v", id, err)
	}
	if !got.Run.StartedAt.Equal(run(id).StartedAt) || got.Run.ID != id {
		f.Errorf("the journal is of %v, want %s", got.Run, id)
	}
	if !reflect.DeepEqual(want, got.Records) { // faster than a diff
		f.Errorf("records of %s (-want +got):\n%.2000s", id, cmp.Diff(want, got.Records))
	}
}

// Promise 10. Even if answers are lost: each part exists once.
func TestJournalIsReadAsItWasWritten(t *testing.T) {
	f := newJournalFixture(t)
	f.proxy.After(proxy.First(2, proxy.On(createConfigMaps)), proxy.Always(proxy.Drop()))
	first, second := records(3, 50), records(2, 10)
	f.write("20260301-120000-ABCDEF", 10, first, nil, second)
	f.wantRead("20260301-120000-ABCDEF", append(first, second...))
	f.wantStored("20260301-120000-abcdef-1-1", "20260301-120000-abcdef-2-1")
}

// Even a part of the maximum size, which gzip cannot make smaller, fits.
func TestLargestRecordFits(t *testing.T) {
	f := newJournalFixture(t)
	want := records(1, journal.MaxPart-5000)
	f.write("large", 10, want)
	f.wantRead("large", want)
	f.proxy.Reset()
	if err := f.journals(10).Write(t.Context(), run("larger"), records(1, journal.MaxPart)); err == nil {
		t.Error("a record that does not fit was written")
	}
	if got := f.proxy.Counts(); len(got) > 0 {
		t.Errorf("requests %v for what cannot be written", got)
	}
}

// A run that began later may still be writing. What counts is the API server's clock: the IDs have
// the opposite order.
func TestPruneKeepsTheOwnRunAndLaterOnes(t *testing.T) {
	f := newJournalFixture(t)
	f.write("run-5", 1, records(1, 10), records(1, 10))
	f.awaitNextSecond()
	own := f.write("run-2", 1, records(1, 10), records(1, 10))
	f.awaitNextSecond()
	f.write("run-1", 1, records(1, 10))
	f.must(own.Prune(t.Context()))
	f.wantStored("run-2-1-1", "run-2-2-1", "run-1-1-1")
}

// A list names what is not a part of a journal.
func TestListNamesWhatIsNoJournal(t *testing.T) {
	f := newJournalFixture(t)
	f.write("run-1", 10, records(3, 10))
	f.write("run-0", 10, records(1, 10))
	f.take("run-0-1-1", "settings", func(cm *corev1.ConfigMap) { cm.BinaryData = nil })
	runs, warnings, err := f.journals(1).List(t.Context())
	f.must(err)
	want := []journal.PastRun{
		journal.NewPastRun(run("run-1"), []journal.PoolRecord{{Backend: "whereabouts", Pool: "kube-system/10.0.0.0-8", Recorded: 3}}),
	}
	want[0].Addresses = 1 // all three have the same
	if diff := cmp.Diff(want, runs); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "are not counted: settings (") {
		t.Errorf("warnings %q, want one about settings", warnings)
	}
}

// awaitNextSecond creates objects until the API server's clock, which counts seconds, has advanced.
func (f *journalFixture) awaitNextSecond() {
	f.Helper()
	var first time.Time
	for {
		cm, err := f.Kube.CoreV1().ConfigMaps(home).Create(f.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "clock-"}}, metav1.CreateOptions{})
		if err != nil {
			f.Fatal(err)
		}
		if first.IsZero() {
			first = cm.CreationTimestamp.Time
		}
		if cm.CreationTimestamp.After(first) {
			return
		}
		time.Sleep(50 * time.Millisecond) // before the next attempt
	}
}

// Another tenant of the namespace has made a ConfigMap with the labels of a journal. It is not ours
// to delete, and the run reports it. Expired journals are still deleted.
func TestPruneLeavesAndNamesWhatIsNoJournal(t *testing.T) {
	f := newJournalFixture(t)
	f.write("run-0", 1, records(1, 10))
	f.take("run-0-1-1", "copy-of-a-journal", func(*corev1.ConfigMap) {})
	f.write("run-00", 1, records(1, 10))
	f.awaitNextSecond()
	err := f.write("run-1", 1, records(1, 10)).Prune(t.Context())
	if want := "copy-of-a-journal (the journal is damaged: the part belongs into ip-reaper-journal-run-0-1-1)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Prune = %v, want %q", err, want)
	}
	_, err = f.Kube.CoreV1().ConfigMaps(home).Get(t.Context(), "copy-of-a-journal", metav1.GetOptions{})
	f.must(err)
	f.wantStored("run-1-1-1")
}

// take deletes a part, and creates a changed copy of it with this name.
func (f *journalFixture) take(part, name string, change func(*corev1.ConfigMap)) {
	f.Helper()
	cm, client := f.stored()[part], f.Kube.CoreV1().ConfigMaps(home)
	f.must(client.Delete(f.Context(), cm.Name, metav1.DeleteOptions{}))
	cm.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: maps.Clone(cm.Labels)}
	change(&cm)
	_, err := client.Create(f.Context(), &cm, metav1.CreateOptions{})
	f.must(err)
}

// Right before a part is deleted, another client changes its labels. It is not deleted.
func TestPruneLeavesAPartThatChanges(t *testing.T) {
	f := newJournalFixture(t)
	f.write("run-1", 1, records(1, 10))
	f.awaitNextSecond()
	j := f.write("run-2", 1, records(1, 10))
	f.proxy.Before(proxy.On("delete configmaps"), func(ctx context.Context, r proxy.Request) proxy.Action {
		patch := []byte(`{"metadata":{"labels":{"ip-reaper/journal":null,"keep":"this"}}}`)
		if _, err := f.Kube.CoreV1().ConfigMaps(home).Patch(ctx, r.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
		return proxy.Pass()
	})
	f.must(j.Prune(t.Context()))
	f.wantStored("run-1-1-1", "run-2-1-1")
}
