package lockevents_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

const controller = "ip-reaper.github.io/ip-reaper"

// event recorder speaks for a pod of the test's namespace, or for none.
func (s *scene) eventRecorder(client kubernetes.Interface, pod string) *kube.EventRecorder {
	self := reaper.PodRef{Namespace: s.namespace, Name: pod}
	if pod == "" {
		self = reaper.PodRef{}
	}
	return kube.NewEventRecorder(client.EventsV1(), client.CoreV1(), self, controller)
}

// report is that of the run that the test is about: its ID is the namespace's
// name.
func (s *scene) report() reaper.Report {
	start := newClock().now()
	return reaper.Report{
		Run:     reaper.RunInfo{ID: s.namespace, StartedAt: start, FinishedAt: start.Add(time.Minute)},
		Summary: reaper.Counts{Entries: 340, Released: 12, Suspected: 3},
	}
}

// releases are n addresses of a pool, and the notes of their events.
func (s *scene) releases(n int, object reaper.Object) (released []reaper.Release, notes []string) {
	for i := range n {
		ip := fmt.Sprintf("10.0.0.%d", i)
		released = append(released, reaper.Release{Object: object, Entry: reaper.Entry{
			IP: ip, Owner: reaper.EntryOwner{Namespace: "default", Pod: "web-0"}, Reason: reaper.PodAbsent,
		}})
		notes = append(notes, fmt.Sprintf("%s of default/web-0 (PodAbsent) released by run %s", ip, s.namespace))
	}
	return released, notes
}

// pool is an object of the test's namespace, which need not exist.
func (s *scene) pool() reaper.Object {
	return reaper.Object{
		APIVersion: "whereabouts.cni.cncf.io/v1alpha1", Kind: "IPPool",
		Namespace: s.namespace, Name: "10.0.0.0-24", UID: "of-" + s.namespace,
	}
}

// block is an object without a namespace.
func (s *scene) block() reaper.Object {
	return reaper.Object{
		APIVersion: "crd.projectcalico.org/v1", Kind: "IPAMBlock", Name: "10-0-0-0-26", UID: "block-of-" + s.namespace,
	}
}

// told are the events about the object of a UID, wherever they are.
func (s *scene) told(uid string) []eventsv1.Event {
	s.Helper()
	list, err := s.Kube.EventsV1().Events(metav1.NamespaceAll).List(s.Context(), metav1.ListOptions{FieldSelector: "regarding.uid=" + uid})
	s.must(err)
	return list.Items
}

// wantNotes checks what was told about the object of a UID.
func (s *scene) wantNotes(uid string, want ...string) {
	s.Helper()
	var got []string
	for _, e := range s.told(uid) {
		got = append(got, e.Note)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Errorf("told (-want +got):\n%s", cmp.Diff(want, got))
	}
}

// job creates a Job and the pod that it made, and returns the Job's UID.
func (s *scene) job(pod string) string {
	s.Helper()
	job, err := s.Kube.BatchV1().Jobs(s.namespace).Create(s.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "reap"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "registry.invalid/main:1"}},
		}}},
	}, metav1.CreateOptions{})
	s.must(err)
	_, err = s.CreatePod(s.Context(), s.namespace, pod, cluster.OwnedBy(*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))))
	s.must(err)
	return string(job.UID)
}

// describe is what kubectl tells people of an object.
func (s *scene) describe(resource, name string) string {
	s.Helper()
	out, err := s.Kubectl(s.Context(), "", "-n", s.namespace, "describe", resource, name)
	if err != nil {
		s.Fatalf("kubectl describe: %v\n%s", err, out)
	}
	return out
}

// Whoever describes the Job, the pool or an object without a namespace reads
// there what the run did.
func TestEventsAreFoundByDescribe(t *testing.T) {
	s := newScene(t)
	s.job("reap-x")
	pool, err := s.Kube.CoreV1().ConfigMaps(s.namespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}, metav1.CreateOptions{})
	s.must(err)
	const definition = "ippools.whereabouts.cni.cncf.io"
	block, err := s.Dynamic.Resource(definitions).Get(t.Context(), definition, metav1.GetOptions{})
	s.must(err)
	released, notes := s.releases(2, reaper.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: s.namespace, Name: "pool", UID: string(pool.UID)})
	released[1].Object = reaper.Object{APIVersion: block.GetAPIVersion(), Kind: block.GetKind(), Name: definition, UID: string(block.GetUID())}
	s.must(s.eventRecorder(s.Kube, "reap-x").Announce(t.Context(), s.report(), released))
	for _, tt := range []struct{ resource, name, want string }{
		{"jobs", "reap", "released 12 of 340 allocations; 3 suspected, 0 failed (" + s.namespace + ")"},
		{"configmaps", "pool", notes[0]},
		{"customresourcedefinitions", definition, notes[1]},
	} {
		if got := s.describe(tt.resource, tt.name); !strings.Contains(got, tt.want) {
			t.Errorf("kubectl describe %s does not say %q:\n%s", tt.resource, tt.want, got)
		}
	}
}

func TestEventSaysWhoReportsAndWhen(t *testing.T) {
	s := newScene(t)
	uid := s.job("reap-x")
	s.must(s.eventRecorder(s.Kube, "reap-x").Announce(t.Context(), s.report(), nil))
	events := s.told(uid)
	if len(events) != 1 {
		t.Fatalf("%d events, want one", len(events))
	}
	got := events[0]
	got.ObjectMeta = metav1.ObjectMeta{Namespace: got.Namespace}
	if when := s.report().Run.FinishedAt; !got.EventTime.Time.Equal(when) {
		t.Errorf("told at %v, want %v", got.EventTime, when)
	}
	got.EventTime = metav1.MicroTime{}
	want := eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace},
		Type:       "Normal", Reason: "Reaped", Action: "Reap",
		ReportingController: controller, ReportingInstance: "reap-x",
		Regarding: corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: s.namespace, Name: "reap", UID: got.Regarding.UID},
		Note:      "released 12 of 340 allocations; 3 suspected, 0 failed (" + s.namespace + ")",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

// An API server takes an event about an object without a namespace in default
// and in kube-system, and nowhere else. That is why ours go into default.
func TestEventAboutAnObjectWithoutANamespaceBelongsIntoDefault(t *testing.T) {
	s := newScene(t)
	block := s.block()
	for namespace, accepted := range map[string]bool{"default": true, "kube-system": true, s.namespace: false} {
		_, err := s.Kube.EventsV1().Events(namespace).Create(t.Context(), &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "by-hand-"}, EventTime: metav1.NewMicroTime(newClock().now()),
			Type: "Normal", Reason: "ByHand", Action: "Test", ReportingController: controller, ReportingInstance: "test",
			Regarding: corev1.ObjectReference{APIVersion: block.APIVersion, Kind: block.Kind, Name: block.Name, UID: "by-hand"},
		}, metav1.CreateOptions{})
		if accepted != (err == nil) || err != nil && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "does not match event.namespace")) {
			t.Errorf("in %s: %v", namespace, err)
		}
	}
	released, notes := s.releases(1, block)
	s.must(s.eventRecorder(s.Kube, "").Announce(t.Context(), s.report(), released))
	s.wantNotes(block.UID, notes...)
	for _, e := range s.told(block.UID) {
		if e.Namespace != "default" {
			t.Errorf("the event is in %s, want default", e.Namespace)
		}
	}
}

// Of many releases 100 are told, and the summary says how many are not. A
// release that no object stands for is not counted there.
func TestEventsOfARunAreLimited(t *testing.T) {
	s := newScene(t)
	uid := s.job("reap-x")
	none, _ := s.releases(5, reaper.Object{})
	released, notes := s.releases(130, s.pool())
	s.must(s.eventRecorder(s.Kube, "reap-x").Announce(t.Context(), s.report(), slices.Concat(none, released)))
	s.wantNotes(s.pool().UID, notes[:100]...)
	s.wantNotes(uid, "released 12 of 340 allocations; 3 suspected, 0 failed ("+s.namespace+"); 30 more releases have no event of their own")
}

func TestSummaryIsAboutThePodWhereNoJobMadeIt(t *testing.T) {
	s := newScene(t)
	pod, err := s.CreatePod(t.Context(), s.namespace, "by-hand")
	s.must(err)
	s.must(s.eventRecorder(s.Kube, "by-hand").Announce(t.Context(), s.report(), nil))
	s.wantNotes(string(pod.UID), "released 12 of 340 allocations; 3 suspected, 0 failed ("+s.namespace+")")
}

func TestOutsideOfAClusterReleasesAreToldWithoutASummary(t *testing.T) {
	s := newScene(t)
	client, p := s.watched()
	released, notes := s.releases(2, s.pool())
	s.must(s.eventRecorder(client, "").Announce(t.Context(), s.report(), released))
	s.wantNotes(s.pool().UID, notes...)
	if diff := cmp.Diff(map[string]int{"create events": 2}, p.Counts()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if got := s.told(s.pool().UID)[0].ReportingInstance; got != s.namespace {
		t.Errorf("reported by %s, want the run %s", got, s.namespace)
	}
}

// What is longer than an API server takes is cut, and told nevertheless.
func TestLongNamesAndNotesAreAccepted(t *testing.T) {
	s := newScene(t)
	pod := strings.Repeat("p", 253)
	uid := s.job(pod)
	r := s.report()
	r.Warnings = []string{strings.Repeat("ä\xff", 2000)}
	released, _ := s.releases(1, s.pool())
	released[0].Entry.Error = strings.Repeat("x", 5000)
	s.must(s.eventRecorder(s.Kube, pod).Announce(t.Context(), r, released))
	for _, uid := range []string{uid, s.pool().UID} {
		events := s.told(uid)
		if len(events) != 1 || len(events[0].Note) < 1020 || events[0].Type != "Warning" {
			t.Errorf("told %v, want one warning with a long note", events)
		}
	}
}
