package kube_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// A journalFixture is a namespace without a journal, and the reaper's way to it through
// a proxy.
type journalFixture struct {
	*fixture
	reaper kubernetes.Interface
	proxy  *proxy.Proxy
}

func newJournalFixture(t *testing.T) *journalFixture {
	t.Helper()
	f := newFixture(t)
	client, p := f.watched()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		f.must(f.Kube.CoreV1().ConfigMaps(f.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	})
	return &journalFixture{f, client, p}
}

// journals are those of a new run.
func (f *journalFixture) journals(keep int) *state.Journals {
	return state.NewJournals(f.reaper.CoreV1(), f.namespace, journal.Retention{Runs: keep})
}

// run is a run that writes journals.
func run(id string) journal.Run {
	return journal.Run{ID: id, StartedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Version: "v1", Cluster: "https://cluster"}
}

// records are n records that gzip cannot make much smaller than size bytes each.
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

// noise is text without a pattern.
var noise = sync.OnceValue(func() string {
	text, state := make([]byte, 4<<20), uint32(1)
	for i := range text {
		state = state*1664525 + 1013904223
		text[i] = "<>&ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012345678"[state>>26]
	}
	return string(text)
})

// write writes the journal of a run, each time some records more.
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

// stored are all ConfigMaps of journals, by their names without what they begin
// with.
func (f *journalFixture) stored() map[string]corev1.ConfigMap {
	f.Helper()
	list, err := f.Kube.CoreV1().ConfigMaps(f.namespace).List(f.Context(), metav1.ListOptions{})
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

// wantStored fails the test unless those are all ConfigMaps.
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

// wantRead fails the test unless a run's journal is whole and has the records.
func (f *journalFixture) wantRead(id string, want []ipam.Record) {
	f.Helper()
	got, err := f.journals(1).Read(f.Context(), id)
	if err != nil {
		f.Errorf("read %s: %v", id, err)
	}
	if !got.Run.StartedAt.Equal(run(id).StartedAt) || got.Run.ID != id {
		f.Errorf("the journal is of %v, want %s", got.Run, id)
	}
	if !reflect.DeepEqual(want, got.Records) { // which is faster than a diff
		f.Errorf("records of %s (-want +got):\n%.2000s", id, cmp.Diff(want, got.Records))
	}
}

// Promise 10.
func TestJournalIsReadAsItWasWritten(t *testing.T) {
	f := newJournalFixture(t)
	first, second := records(3, 50), records(2, 10)
	f.write("20260301-120000-ABCDEF", 10, first, nil, second)
	f.wantRead("20260301-120000-ABCDEF", append(first, second...))
	f.wantStored("20260301-120000-abcdef-1-1", "20260301-120000-abcdef-2-1")
}

// Even a part as large as can be, of which gzip makes nothing smaller, fits.
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

func TestPruneKeepsTheLatestRuns(t *testing.T) {
	f := newJournalFixture(t)
	// The last began first by its own clock: what counts is the API server's.
	for _, id := range []string{"run-5", "run-6", "run-7", "run-1"} {
		j := f.write(id, 3, records(1, 10), records(1, 10))
		if err := j.Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.awaitNextSecond()
	}
	f.wantStored("run-6-1-1", "run-6-2-1", "run-7-1-1", "run-7-2-1", "run-1-1-1", "run-1-2-1")
}

// The name of a ConfigMap has the ID in lower case.
func TestJournalIsFoundByAnIDInAnyCase(t *testing.T) {
	f := newJournalFixture(t)
	const id = "20260301-120000-ABCDEF"
	f.write(id, 10, records(2, 10))
	for _, typed := range []string{id, strings.ToLower(id), "20260301-120000-AbcDef"} {
		j, err := f.journals(1).Read(t.Context(), typed)
		if err != nil || j.Run.ID != id || len(j.Records) != 2 {
			t.Errorf("%s: %d records of %q, %v", typed, len(j.Records), j.Run.ID, err)
		}
	}
}

// A list counts an allocation once that a run recorded twice, and names what is no part of a
// journal.
func TestListCountsTheAllocationsOfEachRun(t *testing.T) {
	f := newJournalFixture(t)
	f.write("run-1", 10, records(3, 10), records(5, 10))
	f.awaitNextSecond()
	f.write("run-2", 10, records(1, 10))
	f.write("run-0", 10, records(1, 10))
	f.take("run-0-1-1", "settings", func(cm *corev1.ConfigMap) { cm.BinaryData = nil })
	runs, warnings, err := f.journals(1).List(t.Context())
	f.must(err)
	want := []journal.PastRun{
		journal.NewPastRun(run("run-2"), []journal.PoolRecord{{Backend: "whereabouts", Pool: "kube-system/10.0.0.0-8", Recorded: 1}}),
		journal.NewPastRun(run("run-1"), []journal.PoolRecord{{Backend: "whereabouts", Pool: "kube-system/10.0.0.0-8", Recorded: 5}}),
	}
	if diff := cmp.Diff(want, runs); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "are not counted: settings (") {
		t.Errorf("warnings %q, want one about settings", warnings)
	}
}

// awaitNextSecond creates objects until the API server's clock has gone on, which
// tells seconds.
func (f *journalFixture) awaitNextSecond() {
	f.Helper()
	var first time.Time
	for {
		cm, err := f.Kube.CoreV1().ConfigMaps(f.namespace).Create(f.Context(),
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
	}
}

// A run that began later may still be writing.
func TestPruneLeavesTheOwnRunAndLaterOnes(t *testing.T) {
	f := newJournalFixture(t)
	f.write("run-1", 1, records(1, 10))
	f.awaitNextSecond()
	own := f.write("run-2", 1, records(1, 10))
	f.awaitNextSecond()
	f.write("run-3", 1, records(1, 10))
	if err := own.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.wantStored("run-2-1-1", "run-3-1-1")
}

func TestPruneWithoutAWriteDoesNothing(t *testing.T) {
	f := newJournalFixture(t)
	f.write("run-1", 1, records(1, 10))
	f.proxy.Reset()
	j := f.journals(1)
	if err := errors.Join(j.Write(t.Context(), run("run-2"), nil), j.Prune(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := f.proxy.Counts(); len(got) > 0 {
		t.Errorf("requests %v, want none", got)
	}
	f.wantStored("run-1-1-1")
}

// Another tenant of the namespace has made a ConfigMap with the labels of a journal. It is
// not ours to delete, and the run is told of it. The journals beside it go when their time
// has come.
func TestPruneLeavesAndNamesWhatIsNoJournal(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*corev1.ConfigMap)
		want   string
	}{
		{"settings", func(cm *corev1.ConfigMap) { cm.BinaryData, cm.Data = nil, map[string]string{"a": "b"} }, "damaged"},
		{"copy-of-a-journal", func(*corev1.ConfigMap) {}, "belongs into ip-reaper-journal-run-0-1-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newJournalFixture(t)
			f.write("run-0", 1, records(1, 10))
			f.take("run-0-1-1", tt.name, tt.change)
			f.write("run-00", 1, records(1, 10))
			f.awaitNextSecond()
			err := f.write("run-1", 1, records(1, 10)).Prune(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.name+" (") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Prune = %v, want that %s was left, because of %q", err, tt.name, tt.want)
			}
			if _, err := f.Kube.CoreV1().ConfigMaps(f.namespace).Get(t.Context(), tt.name, metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
			got := f.stored()
			delete(got, strings.TrimPrefix(tt.name, state.JournalName+"-"))
			if _, ok := got["run-1-1-1"]; len(got) != 1 || !ok {
				t.Errorf("%v, want the journal of run-1 alone", slices.Collect(maps.Keys(got)))
			}
		})
	}
}

// take makes another ConfigMap of a part, which it deletes.
func (f *journalFixture) take(part, name string, change func(*corev1.ConfigMap)) {
	f.Helper()
	cm, client := f.stored()[part], f.Kube.CoreV1().ConfigMaps(f.namespace)
	f.must(client.Delete(f.Context(), cm.Name, metav1.DeleteOptions{}))
	cm.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: maps.Clone(cm.Labels)}
	change(&cm)
	_, err := client.Create(f.Context(), &cm, metav1.CreateOptions{})
	f.must(err)
}

// While a part is to be deleted, another client gives its name to a ConfigMap of its own,
// or makes the part its own by the labels. Neither is deleted, and the run is told.
func TestPruneLeavesWhatTookThePlaceOfAPart(t *testing.T) {
	for name, interfere := range map[string]func(context.Context, corev1client.ConfigMapInterface, string) error{
		"another object": func(ctx context.Context, client corev1client.ConfigMapInterface, name string) error {
			if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				return err
			}
			_, err := client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			return err
		},
		"the same with other labels": func(ctx context.Context, client corev1client.ConfigMapInterface, name string) error {
			patch := []byte(`{"metadata":{"labels":{"ip-reaper/journal":null,"keep":"this"}}}`)
			_, err := client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newJournalFixture(t)
			f.write("run-1", 1, records(1, 10))
			f.awaitNextSecond()
			j := f.write("run-2", 1, records(1, 10))
			f.proxy.Before(proxy.On("delete configmaps"), func(ctx context.Context, r proxy.Request) proxy.Action {
				if err := interfere(ctx, f.Kube.CoreV1().ConfigMaps(f.namespace), r.Name); err != nil {
					t.Error(err)
				}
				return proxy.Pass()
			})
			err := j.Prune(t.Context())
			if err == nil || !strings.Contains(err.Error(), "ip-reaper-journal-run-1-1-1 (another client changed it") {
				t.Errorf("Prune = %v, want that the part was left", err)
			}
			f.wantStored("run-1-1-1", "run-2-1-1")
		})
	}
}

func TestRunThatIsNotThere(t *testing.T) {
	f := newJournalFixture(t)
	_, err := f.journals(1).Read(t.Context(), "run-0")
	if !errors.Is(err, journal.ErrNone) || !strings.Contains(err.Error(), "no run has a journal there") {
		t.Errorf("%v, want that there is no journal at all", err)
	}
	for i := range 12 {
		f.write(fmt.Sprintf("run-%02d", i), 1, records(1, 10))
	}
	for _, id := range []string{"run-0", "run-1,run-2", "a b", ""} {
		_, err = f.journals(1).Read(t.Context(), id)
		if err == nil || errors.Is(err, journal.ErrDamaged) {
			t.Errorf("%q: %v, want that it is not there", id, err)
		}
	}
	_, err = f.journals(1).Read(t.Context(), "run-0")
	want := "runs with a journal there: 12, the latest are run-11, run-10, run-09, run-08, run-07, run-06, run-05, run-04, run-03, run-02"
	if !errors.Is(err, journal.ErrNone) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
