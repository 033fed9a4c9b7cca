package run_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// threeParts returns records that need three ConfigMaps, the first of which has the first two.
func threeParts() []ipam.Record { return records(5, 200<<10) }

const createConfigMaps = "create configmaps"

// Promise 10. A failed write leaves nothing behind: it could be taken for a journal, and would use
// up a quota.
func TestWriteThatFailsLeavesNothing(t *testing.T) {
	second := func(r proxy.Request) bool {
		return r.String() == createConfigMaps && strings.Contains(string(r.Body), "run-1-1-2")
	}
	for _, tt := range []struct {
		name   string
		before bool
		action proxy.Action
	}{
		{"forbidden", true, proxy.Forbidden()},
		{"carried out, and never an answer", false, proxy.Drop()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newJournalFixture(t)
			if tt.before {
				f.proxy.Before(second, proxy.Always(tt.action))
			} else {
				f.proxy.After(second, proxy.Always(tt.action))
			}
			j := f.journals(1)
			if err := j.Write(t.Context(), run("run-1"), threeParts()); err == nil || !strings.Contains(err.Error(), "ip-reaper-journal-run-1-1-2") {
				t.Errorf("Write = %v, want that the second part failed", err)
			}
			f.wantStored()
			f.proxy.Reset()
			f.must(j.Write(t.Context(), run("run-1"), threeParts()))
			f.wantRead("run-1", threeParts())
		})
	}
}

// Promise 10. What cannot be removed is damage, not a journal. The run's next write is independent
// of it.
func TestWhatAFailedWriteHasLeftIsDamage(t *testing.T) {
	f := newJournalFixture(t)
	f.proxy.Before(proxy.Nth(2, proxy.On(createConfigMaps)), proxy.Always(proxy.Forbidden()))
	f.proxy.Before(proxy.On("delete configmaps"), proxy.Always(proxy.Forbidden()))
	j := f.journals(1)
	err := j.Write(t.Context(), run("run-1"), threeParts())
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "could not be removed, and is not a whole journal") {
		t.Errorf("Write = %v, want that the second part is forbidden, and that the first one stays", err)
	}
	f.wantDamage("run-1", 2, "write 1 lacks")
	f.must(j.Write(t.Context(), run("run-1"), threeParts()))
	f.wantStored("run-1-1-1", "run-1-2-1", "run-1-2-2", "run-1-2-3")
	f.wantDamage("run-1", 2+len(threeParts()), "write 1 lacks")
}

// wantDamage fails the test unless this many records of the journal can be read, and the damage is
// reported.
func (f *journalFixture) wantDamage(id string, records int, want string) {
	f.Helper()
	got, err := f.journals(1).Read(f.Context(), id)
	if !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), want) {
		f.Errorf("read %s: %v, want damage with %q", id, err, want)
	}
	if len(got.Records) != records {
		f.Errorf("%d records, want %d", len(got.Records), records)
	}
}

// An object with the name of a part is neither overwritten nor deleted.
func TestNameThatIsTaken(t *testing.T) {
	f := newJournalFixture(t)
	f.write("RUN-1", 1, records(1, 10))
	before := f.stored()
	err := f.journals(1).Write(t.Context(), run("run-1"), records(1, 10))
	if err == nil || !strings.Contains(err.Error(), "another object under this name") {
		t.Errorf("Write = %v, want that the name is taken", err)
	}
	if after := f.stored(); len(after) != 1 || after["run-1-1-1"].ResourceVersion != before["run-1-1-1"].ResourceVersion {
		t.Errorf("the other run's part was touched: %v", after)
	}
	f.wantRead("RUN-1", records(1, 10))
}

// zipped compresses text as in a part.
func zipped(t *testing.T, text []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// Promise 10: what can be read can be restored, and the rest is reported.
func TestJournalThatWasEditedByHand(t *testing.T) {
	data := func(data []byte) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{"journal.json.gz": data} }
	}
	f := newJournalFixture(t)
	f.write("run-1", 1, threeParts())
	const second = "ip-reaper-journal-run-1-1-2: the journal is damaged: "
	for _, tt := range []struct {
		name   string
		change func(*corev1.ConfigMap)
		want   string
	}{
		{"label removed", func(cm *corev1.ConfigMap) { delete(cm.Labels, state.RunLabel) }, "write 1 lacks 1 of 3 parts"},
		{"a bomb", data(zipped(t, make([]byte, journal.MaxPart+1<<20))), second + "the part has more than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f.T = t
			part := f.stored()["run-1-1-2"]
			f.take("run-1-1-2", "ip-reaper-journal-run-1-1-2", tt.change)
			f.wantDamage("run-1", 3, tt.want)
			f.take("run-1-1-2", "ip-reaper-journal-run-1-1-2", func(cm *corev1.ConfigMap) { cm.Labels, cm.BinaryData = part.Labels, part.BinaryData })
		})
	}
	f.T = t
	f.wantRead("run-1", threeParts())
}
