// Package journals_test shows on a real API server that the journal of a run is
// there before Write returns, that it is read as it was written, and that whatever
// happens to it is told. The numbers in the comments are those of the promises in
// docs/design.md.
package journals_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// A scene is an empty namespace, and the reaper's way to it through a proxy.
type scene struct {
	*testing.T
	admin     kubernetes.Interface
	reaper    kubernetes.Interface
	proxy     *proxy.Proxy
	namespace string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	c := cluster.StartT(t)
	p, err := proxy.Start(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	kube, err := kubernetes.NewForConfig(p.Config(c.Config))
	if err != nil {
		t.Fatal(err)
	}
	return &scene{t, c.Kube, kube, p, c.Namespace(t)}
}

// journals are those of a new run.
func (s *scene) journals(keep int) *kube.Journals {
	return kube.NewJournals(s.reaper.CoreV1(), s.namespace, keep)
}

// run is a run that writes journals.
func run(id string) reaper.JournalRun {
	return reaper.JournalRun{ID: id, StartedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Version: "v1", Cluster: "https://cluster"}
}

// records are n records that gzip cannot make much smaller than size bytes each.
func records(n, size int) []reaper.Record {
	all := make([]reaper.Record, n)
	state := uint32(1)
	for i := range all {
		var text strings.Builder
		for text.Len() < size {
			state = state*1664525 + 1013904223
			text.WriteByte("<>&ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012345678"[state>>26])
		}
		all[i] = reaper.Record{
			Backend: "whereabouts", Pool: "kube-system/10.0.0.0-8", Key: fmt.Sprint(i), IP: "10.0.0.1",
			Stored: fmt.Appendf(nil, `{"z":%q,"a":18446744073709551615,"a":"\u003c"}`, text.String()),
		}
	}
	return all
}

// write writes the journal of a run, each time some records more.
func (s *scene) write(id string, keep int, writes ...[]reaper.Record) *kube.Journals {
	s.Helper()
	j := s.journals(keep)
	for _, r := range writes {
		if err := j.Write(s.Context(), run(id), r); err != nil {
			s.Fatal(err)
		}
	}
	return j
}

// stored are all ConfigMaps of journals, by their names without what they begin
// with.
func (s *scene) stored() map[string]corev1.ConfigMap {
	s.Helper()
	list, err := s.admin.CoreV1().ConfigMaps(s.namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	all := map[string]corev1.ConfigMap{}
	for _, cm := range list.Items {
		if name, ok := strings.CutPrefix(cm.Name, kube.JournalName+"-"); ok {
			all[name] = cm
		}
	}
	return all
}

// wantStored fails the test unless those are all ConfigMaps.
func (s *scene) wantStored(want ...string) {
	s.Helper()
	got := s.stored()
	for _, name := range want {
		if _, ok := got[name]; !ok {
			s.Errorf("%s is missing", name)
		}
		delete(got, name)
	}
	for name := range got {
		s.Errorf("%s is there", name)
	}
}

// wantRead fails the test unless a run's journal is whole and has the records.
func (s *scene) wantRead(id string, want []reaper.Record) {
	s.Helper()
	got, err := s.journals(1).Read(s.Context(), id)
	if err != nil {
		s.Errorf("read %s: %v", id, err)
	}
	if !got.Run.StartedAt.Equal(run(id).StartedAt) || got.Run.ID != id {
		s.Errorf("the journal is of %v, want %s", got.Run, id)
	}
	if !reflect.DeepEqual(want, got.Records) { // which is faster than a diff
		s.Errorf("records of %s (-want +got):\n%.2000s", id, cmp.Diff(want, got.Records))
	}
}

// Promise 10.
func TestJournalIsReadAsItWasWritten(t *testing.T) {
	s := newScene(t)
	first, second := records(3, 50), records(2, 10)
	s.write("20260301-120000-ABCDEF", 10, first, nil, second)
	s.wantRead("20260301-120000-ABCDEF", append(first, second...))
	s.wantStored("20260301-120000-abcdef-1-1", "20260301-120000-abcdef-2-1")
}

func TestTwentyThousandRecords(t *testing.T) {
	s := newScene(t)
	want := records(20_000, 500)
	s.write("large", 10, want)
	if n := len(s.stored()); n < 20 {
		t.Errorf("%d ConfigMaps, want one for each half MiB", n)
	}
	s.wantRead("large", want)
}

// Even a part as large as can be, of which gzip makes nothing smaller, fits.
func TestLargestRecordFits(t *testing.T) {
	s := newScene(t)
	want := records(1, journal.MaxPart-1000)
	s.write("large", 10, want)
	s.wantRead("large", want)
	s.proxy.Reset()
	if err := s.journals(10).Write(t.Context(), run("larger"), records(1, journal.MaxPart)); err == nil {
		t.Error("a record that does not fit was written")
	}
	if got := s.proxy.Counts(); len(got) > 0 {
		t.Errorf("requests %v for what cannot be written", got)
	}
}

func TestPruneKeepsTheLatestRuns(t *testing.T) {
	s := newScene(t)
	// The last began first by its own clock: what counts is the API server's.
	for _, id := range []string{"run-5", "run-6", "run-7", "run-1"} {
		j := s.write(id, 3, records(1, 10), records(1, 10))
		if err := j.Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
		awaitNextSecond(s)
	}
	s.wantStored("run-6-1-1", "run-6-2-1", "run-7-1-1", "run-7-2-1", "run-1-1-1", "run-1-2-1")
}

// awaitNextSecond creates objects until the API server's clock has gone on, which
// tells seconds.
func awaitNextSecond(s *scene) {
	s.Helper()
	var first time.Time
	for {
		cm, err := s.admin.CoreV1().ConfigMaps(s.namespace).Create(s.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "clock-"}}, metav1.CreateOptions{})
		if err != nil {
			s.Fatal(err)
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
	s := newScene(t)
	s.write("run-1", 1, records(1, 10))
	awaitNextSecond(s)
	own := s.write("run-2", 1, records(1, 10))
	awaitNextSecond(s)
	s.write("run-3", 1, records(1, 10))
	if err := own.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantStored("run-2-1-1", "run-3-1-1")
}

func TestPruneWithoutAWriteDoesNothing(t *testing.T) {
	s := newScene(t)
	s.write("run-1", 1, records(1, 10))
	s.proxy.Reset()
	j := s.journals(1)
	if err := errors.Join(j.Write(t.Context(), run("run-2"), nil), j.Prune(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := s.proxy.Counts(); len(got) > 0 {
		t.Errorf("requests %v, want none", got)
	}
	s.wantStored("run-1-1-1")
}

// What only looks like a journal is not ours to delete.
func TestPruneLeavesWhatIsNoJournal(t *testing.T) {
	s := newScene(t)
	_, err := s.admin.CoreV1().ConfigMaps(s.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "mine", Labels: map[string]string{kube.JournalLabel: "true", kube.RunLabel: "run-0"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	awaitNextSecond(s)
	if err := s.write("run-1", 1, records(1, 10)).Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.admin.CoreV1().ConfigMaps(s.namespace).Get(t.Context(), "mine", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// What has got the name of a part while it was to be deleted is not deleted.
func TestPruneLeavesWhatTookThePlaceOfAPart(t *testing.T) {
	s := newScene(t)
	s.write("run-1", 1, records(1, 10))
	awaitNextSecond(s)
	j := s.write("run-2", 1, records(1, 10))
	s.proxy.Before(proxy.On("delete configmaps"), func(ctx context.Context, r proxy.Request) proxy.Action {
		maps, mine := s.admin.CoreV1().ConfigMaps(s.namespace), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: r.Name}}
		if err := maps.Delete(ctx, r.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := maps.Create(ctx, mine, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
		return proxy.Pass()
	})
	if err := j.Prune(t.Context()); err != nil {
		t.Error(err)
	}
	s.wantStored("run-1-1-1", "run-2-1-1")
}

// Two runs at once have a journal each.
func TestTwoRunsAtOnce(t *testing.T) {
	s := newScene(t)
	want := records(2_000, 500)
	var group sync.WaitGroup
	for _, id := range []string{"run-a", "run-b"} {
		group.Go(func() {
			j := s.journals(2)
			err := errors.Join(j.Write(t.Context(), run(id), want[:1500]), j.Prune(t.Context()), j.Write(t.Context(), run(id), want[1500:]))
			if err != nil {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	group.Wait()
	s.wantRead("run-a", want)
	s.wantRead("run-b", want)
}

func TestRunThatIsNotThere(t *testing.T) {
	s := newScene(t)
	_, err := s.journals(1).Read(t.Context(), "run-0")
	if !errors.Is(err, reaper.ErrNoJournal) || !strings.Contains(err.Error(), "no run has a journal there") {
		t.Errorf("%v, want that there is no journal at all", err)
	}
	for i := range 12 {
		s.write(fmt.Sprintf("run-%02d", i), 1, records(1, 10))
	}
	for _, id := range []string{"run-0", "run-1,run-2", "a b", ""} {
		_, err = s.journals(1).Read(t.Context(), id)
		if err == nil || errors.Is(err, reaper.ErrJournalDamaged) {
			t.Errorf("%q: %v, want that it is not there", id, err)
		}
	}
	_, err = s.journals(1).Read(t.Context(), "run-0")
	want := "runs with a journal there: 12, the latest are run-11, run-10, run-09, run-08, run-07, run-06, run-05, run-04, run-03, run-02"
	if !errors.Is(err, reaper.ErrNoJournal) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
