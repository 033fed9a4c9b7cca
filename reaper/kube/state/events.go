package state

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// The reasons and actions of events about a run and a release. Users select events by these
// words, so they must not change.
const (
	reasonReaped   = "Reaped"
	actionReap     = "Reap"
	reasonReleased = "AddressReleased"
	actionRelease  = "Release"
)

// eventPrefix begins the names of all events.
const eventPrefix = "ip-reaper-"

// The limits for events. An API server refuses longer texts, in bytes (NoteLengthLimit and
// ReportingInstanceLengthLimit in k8s.io/kubernetes/pkg/apis/core/validation/events.go).
const (
	maxReleaseEvents = 100
	maxNote          = 1024
	maxInstance      = 128

	eventWriters = 8 // requests at the same time
)

// EventRecorder writes events (events.k8s.io/v1) about a run and its releases. It
// implements reaper.EventRecorder, and is safe for concurrent use. It needs the rights to
// create events in all namespaces, and to get its own pod.
type EventRecorder struct {
	events     eventsv1client.EventsGetter
	pods       corev1client.PodsGetter
	self       ipam.PodRef
	controller string
}

// NewEventRecorder returns a recorder for the pod self, which is zero outside a cluster.
// The controller is a qualified name, such as ip-reaper.github.io/ip-reaper.
func NewEventRecorder(events eventsv1client.EventsGetter, pods corev1client.PodsGetter, self ipam.PodRef, controller string) *EventRecorder {
	return &EventRecorder{events, pods, self, controller}
}

// Announce implements reaper.EventRecorder. It writes one event about the run, and one
// about the pool of each release, if that has an object, up to maxReleaseEvents. The event
// about the run refers to the Job that controls the recorder's pod, or to the pod if no
// Job does. Without a pod, there is no event about the run.
//
// The report needs an ID, and the time of its end or of its beginning. The error counts the
// events that could not be written, and wraps the first error. It does not stop the other
// events.
func (h *EventRecorder) Announce(ctx context.Context, r report.Report, objects map[ipam.PoolRef]ipam.Object) error {
	var writes []func() error
	omitted := 0
	for i := range r.Entries {
		e := &r.Entries[i]
		o, has := objects[ipam.PoolRef{Backend: e.Backend, Name: e.Pool}]
		switch {
		case e.Outcome != report.Released || !has:
		case len(writes) == maxReleaseEvents:
			omitted++
		default:
			writes = append(writes, func() error { return h.create(ctx, r, releaseEvent(r.Run.ID, *e, o)) })
		}
	}
	if (h.self != ipam.PodRef{}) {
		writes = slices.Insert(writes, 0, func() error { return h.summarize(ctx, r, omitted) })
	}
	errs := make([]error, len(writes))
	var g errgroup.Group
	g.SetLimit(eventWriters)
	for i, write := range writes {
		g.Go(func() error {
			errs[i] = write()
			return nil // an error must not stop the other events
		})
	}
	_ = g.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d events not written: %w", len(errs), len(writes), errs[0])
}

// summarize writes the event about the run.
func (h *EventRecorder) summarize(ctx context.Context, r report.Report, omitted int) error {
	var pod *corev1.Pod
	err := kube.Patiently(ctx, func(ctx context.Context) (err error) {
		pod, err = h.pods.Pods(h.self.Namespace).Get(ctx, h.self.Name, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("summary: get pod %s: %w", h.self, err)
	}
	note, kind := summary(r, omitted)
	return h.create(ctx, r, eventsv1.Event{
		Type: kind, Reason: reasonReaped, Action: actionReap, Regarding: makerOf(pod), Note: note,
	})
}

// makerOf returns a reference to the Job that controls the pod, or else to the pod itself.
func makerOf(pod *corev1.Pod) corev1.ObjectReference {
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "Job" {
		return corev1.ObjectReference{
			APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: pod.Namespace, Name: owner.Name, UID: owner.UID,
		}
	}
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

// summary returns the note and the type of the event about a run. The event is a warning
// if anything failed.
func summary(r report.Report, omitted int) (note, kind string) {
	kind = corev1.EventTypeNormal
	if r.Summary.Failed+r.Summary.Deleting > 0 || len(r.Warnings) > 0 {
		kind = corev1.EventTypeWarning
	}
	parts := []string{
		fmt.Sprintf("released %s (%d of %d allocations)", printable.Counted(r.Freed(), "address"), r.Summary.Released, r.Summary.Entries),
		fmt.Sprintf("%d suspected, %d failed (%s)", r.Summary.Suspected, r.Summary.Failed, r.Run.ID),
	}
	if omitted > 0 {
		parts = append(parts, fmt.Sprintf("%d more releases have no event of their own", omitted))
	}
	for _, b := range r.Backends {
		if b.Status == ipam.StatusFailed || b.Status == ipam.StatusPartial {
			kind = corev1.EventTypeWarning
			parts = append(parts, fmt.Sprintf("%s %s: %s", b.Name, b.Status, b.Message))
		}
	}
	return strings.Join(append(parts, r.Warnings...), "; "), kind
}

// releaseEvent returns the event about a release. It is a warning if the release left
// something behind, such as a handle.
func releaseEvent(run string, e report.Entry, o ipam.Object) eventsv1.Event {
	owner := ""
	switch {
	case e.Owner.Pod != "":
		owner = " of " + e.Owner.Namespace + "/" + e.Owner.Pod
	case e.Owner.Sandbox != "":
		owner = " of sandbox " + e.Owner.Sandbox
	}
	note := fmt.Sprintf("%s%s (%s) released by run %s", cmp.Or(e.IP, e.Key), owner, e.Reason, run)
	kind := corev1.EventTypeNormal
	if e.Error != "" {
		note += "; " + e.Error
		kind = corev1.EventTypeWarning
	}
	return eventsv1.Event{
		Type: kind, Reason: reasonReleased, Action: actionRelease, Note: note,
		Regarding: corev1.ObjectReference{
			APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID),
		},
	}
}

// create completes an event and writes it.
func (h *EventRecorder) create(ctx context.Context, r report.Report, e eventsv1.Event) error {
	// For an object without a namespace, an API server accepts events only in default and
	// kube-system (legacyValidateEvent in
	// k8s.io/kubernetes/pkg/apis/core/validation/events.go).
	e.Namespace = cmp.Or(e.Regarding.Namespace, metav1.NamespaceDefault)
	// The server must not generate the name: a retry would write a second event.
	e.Name = eventPrefix + strings.ToLower(rand.Text())
	e.EventTime = metav1.NewMicroTime(slices.MaxFunc([]time.Time{r.Run.StartedAt, r.Run.FinishedAt}, time.Time.Compare))
	e.ReportingController = h.controller
	instance := cmp.Or(h.self.Name, r.Run.ID)
	e.ReportingInstance = instance[:min(len(instance), maxInstance)]
	e.Note = printable.Shorten(printable.Line(e.Note), maxNote)
	err := kube.Patiently(ctx, func(ctx context.Context) error {
		_, err := h.events.Events(e.Namespace).Create(ctx, &e, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // the answer to an earlier try was lost
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s about %s %s in namespace %s: %w", e.Reason, e.Regarding.Kind, e.Regarding.Name, e.Namespace, err)
	}
	return nil
}
