package kube_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

const controller = "ip-reaper.github.io/ip-reaper"

// eventRecorder returns a recorder for a pod of the test's namespace, or for none.
func (f *fixture) eventRecorder(client kubernetes.Interface, pod string) *state.EventRecorder {
	self := ipam.PodRef{Namespace: f.namespace, Name: pod}
	if pod == "" {
		self = ipam.PodRef{}
	}
	return state.NewEventRecorder(client.EventsV1(), client.CoreV1(), self, controller)
}

// report returns the report of the tested run, whose ID is the namespace's name.
func (f *fixture) report() report.Report {
	start := newClock().now()
	return report.Report{
		Run:     report.RunInfo{ID: f.namespace, StartedAt: start, FinishedAt: start.Add(time.Minute)},
		Summary: report.Counts{Entries: 340, Released: 12, Suspected: 3},
	}
}

// A release is an entry that was released, and the object of its pool; zero if it has none.
type release struct {
	object ipam.Object
	entry  report.Entry
}

// announce has the events of a run with these releases written.
func announce(ctx context.Context, recorder *state.EventRecorder, r report.Report, released []release) error {
	objects := make(map[ipam.PoolRef]ipam.Object)
	for _, one := range released {
		one.entry.Pool, one.entry.Outcome = one.object.Namespace+"/"+one.object.Name, report.Released
		r.Entries = append(r.Entries, one.entry)
		if one.object != (ipam.Object{}) {
			objects[ipam.PoolRef{Name: one.entry.Pool}] = one.object
		}
	}
	return recorder.Announce(ctx, r, objects)
}

// releases returns the releases of n addresses of an object, and the notes of their events.
func (f *fixture) releases(n int, object ipam.Object) (released []release, notes []string) {
	for i := range n {
		ip := fmt.Sprintf("10.0.0.%d", i)
		released = append(released, release{object, report.Entry{
			IP: ip, Owner: ipam.EntryOwner{Namespace: "default", Pod: "web-0"}, Reason: judge.PodAbsent,
		}})
		notes = append(notes, fmt.Sprintf("%s of default/web-0 (PodAbsent) released by run %s", ip, f.namespace))
	}
	return released, notes
}

// pool returns an object in the test's namespace, which need not exist.
func (f *fixture) pool() ipam.Object {
	return ipam.Object{
		APIVersion: "whereabouts.cni.cncf.io/v1alpha1", Kind: "IPPool",
		Namespace: f.namespace, Name: "10.0.0.0-24", UID: "of-" + f.namespace,
	}
}

// told returns the events about the object with a UID, in any namespace.
func (f *fixture) told(uid string) []eventsv1.Event {
	f.Helper()
	list, err := f.Kube.EventsV1().Events(metav1.NamespaceAll).List(f.Context(), metav1.ListOptions{FieldSelector: "regarding.uid=" + uid})
	f.must(err)
	return list.Items
}

// wantNotes checks the notes of the events about the object with a UID.
func (f *fixture) wantNotes(uid string, want ...string) {
	f.Helper()
	var got []string
	for _, e := range f.told(uid) {
		got = append(got, e.Note)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		f.Errorf("told (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// job creates a Job and its pod, and returns the Job's UID.
func (f *fixture) job(pod string) string {
	f.Helper()
	job, err := f.Kube.BatchV1().Jobs(f.namespace).Create(f.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "reap"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "registry.invalid/main:1"}},
		}}},
	}, metav1.CreateOptions{})
	f.must(err)
	_, err = f.CreatePod(f.Context(), f.namespace, pod, cluster.OwnedBy(*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))))
	f.must(err)
	return string(job.UID)
}

// describe returns what kubectl describe says about an object.
func (f *fixture) describe(resource, name string) string {
	f.Helper()
	out, err := f.Kubectl(f.Context(), "", "-n", f.namespace, "describe", resource, name)
	if err != nil {
		f.Fatalf("kubectl describe: %v\n%s", err, out)
	}
	return out
}

// kubectl describe shows the events of the Job and of an object without a namespace.
func TestEventsAreFoundByDescribe(t *testing.T) {
	f := newFixture(t)
	f.job("reap-x")
	const definition = "ippools.whereabouts.cni.cncf.io"
	block, err := f.Dynamic.Resource(definitions).Get(t.Context(), definition, metav1.GetOptions{})
	f.must(err)
	released, notes := f.releases(1, ipam.Object{APIVersion: block.GetAPIVersion(), Kind: block.GetKind(), Name: definition, UID: string(block.GetUID())})
	f.must(announce(t.Context(), f.eventRecorder(f.Kube, "reap-x"), f.report(), released))
	for _, tt := range []struct{ resource, name, want string }{
		{"jobs", "reap", "released 0 addresses (12 of 340 allocations); 3 suspected, 0 failed (" + f.namespace + ")"},
		{"customresourcedefinitions", definition, notes[0]},
	} {
		if got := f.describe(tt.resource, tt.name); !strings.Contains(got, tt.want) {
			t.Errorf("kubectl describe %s does not say %q:\n%s", tt.resource, tt.want, got)
		}
	}
}

// Of many releases, 100 get an event, and the summary says how many do not. It does not count
// releases without an object. It says who reports, and when.
func TestEventsOfARunAreLimited(t *testing.T) {
	f := newFixture(t)
	uid := f.job("reap-x")
	none, _ := f.releases(5, ipam.Object{})
	released, notes := f.releases(130, f.pool())
	f.must(announce(t.Context(), f.eventRecorder(f.Kube, "reap-x"), f.report(), slices.Concat(none, released)))
	f.wantNotes(f.pool().UID, notes[:100]...)
	events := f.told(uid)
	if len(events) != 1 {
		t.Fatalf("%d events, want one", len(events))
	}
	got := events[0]
	if when := f.report().Run.FinishedAt; !got.EventTime.Time.Equal(when) || !strings.HasPrefix(got.Name, "ip-reaper-") { // admission limits the account to these
		t.Errorf("%s told at %v, want %v", got.Name, got.EventTime, when)
	}
	got.ObjectMeta, got.EventTime = metav1.ObjectMeta{Namespace: got.Namespace}, metav1.MicroTime{}
	want := eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace},
		Type:       "Normal", Reason: "Reaped", Action: "Reap",
		ReportingController: controller, ReportingInstance: "reap-x",
		Regarding: corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: f.namespace, Name: "reap", UID: types.UID(uid)},
		Note:      "released 0 addresses (12 of 340 allocations); 3 suspected, 0 failed (" + f.namespace + "); 30 more releases have no event of their own",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

// What is too long for an API server is truncated, but still written, as one printable line:
// kubectl prints it.
func TestLongNamesAndNotesAreAccepted(t *testing.T) {
	const hostile = "a\x1b[2J\n\u202e\xff"
	f := newFixture(t)
	pod := strings.Repeat("p", 253)
	uid := f.job(pod)
	r := f.report()
	r.Warnings = []string{strings.Repeat(hostile, 500)}
	released, _ := f.releases(1, f.pool())
	released[0].entry.Error = strings.Repeat(hostile, 500)
	f.must(announce(t.Context(), f.eventRecorder(f.Kube, pod), r, released))
	for _, uid := range []string{uid, f.pool().UID} {
		events := f.told(uid)
		if len(events) != 1 || len(events[0].Note) < 1000 || events[0].Type != "Warning" {
			t.Fatalf("told %v, want one warning with a long note", events)
		}
		if note := events[0].Note; printable.Line(note) != note || !strings.Contains(note, `; a\x1b[2J\n\u202e\xffa\x1b`) {
			t.Errorf("note %q, want one printable line", note)
		}
	}
}
