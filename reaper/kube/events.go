package kube

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

	"github.com/ip-reaper/ip-reaper/reaper"
)

// The reasons and actions of events, stable words that users select by: of the
// summary of a run, and of a release.
const (
	reasonReaped   = "Reaped"
	actionReap     = "Reap"
	reasonReleased = "AddressReleased"
	actionRelease  = "Release"
)

// How much is told. The lengths are in bytes, and an API server accepts no more
// (NoteLengthLimit and ReportingInstanceLengthLimit in
// k8s.io/kubernetes/pkg/apis/core/validation/events.go).
const (
	maxReleaseEvents = 100
	maxNote          = 1024
	maxInstance      = 128

	eventWriters = 8 // at the same time
)

// EventRecorder tells what a run did by events of events.k8s.io/v1. It implements
// reaper.EventRecorder, and may be used concurrently. It needs the rights to create
// events in all namespaces, and to get the pod that it runs in.
type EventRecorder struct {
	events     eventsv1client.EventsGetter
	pods       corev1client.PodsGetter
	self       reaper.PodRef
	controller string
}

// NewHerald returns a event recorder who speaks for the pod self, which is zero outside
// of a cluster. The controller is a qualified name, such as
// ip-reaper.github.io/ip-reaper.
func NewEventRecorder(events eventsv1client.EventsGetter, pods corev1client.PodsGetter, self reaper.PodRef, controller string) *EventRecorder {
	return &EventRecorder{events, pods, self, controller}
}

// Announce implements reaper.EventRecorder. The summary is about the Job that made the
// event recorder's pod, or about the pod if no Job did; without a pod there is none. A
// release is told about its object, if it has one, up to maxReleaseEvents of
// them. The report needs an ID, and the time of its end or of its beginning.
//
// The error says how many events are not there, and why not the first of them;
// the others are.
func (h *EventRecorder) Announce(ctx context.Context, r reaper.Report, released []reaper.Release) error {
	told := slices.DeleteFunc(slices.Clone(released), func(one reaper.Release) bool { return one.Object == reaper.Object{} })
	untold := max(0, len(told)-maxReleaseEvents)
	told = told[:len(told)-untold]

	var tellings []func() error
	if (h.self != reaper.PodRef{}) {
		tellings = append(tellings, func() error { return h.summarize(ctx, r, untold) })
	}
	for _, one := range told {
		tellings = append(tellings, func() error { return h.create(ctx, r, releaseEvent(r.Run.ID, one)) })
	}
	errs := make([]error, len(tellings))
	var g errgroup.Group
	g.SetLimit(eventWriters)
	for i, tell := range tellings {
		g.Go(func() error {
			errs[i] = tell()
			return nil // one that fails stops no other
		})
	}
	_ = g.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d events not written: %w", len(errs), len(tellings), errs[0])
}

// summarize tells of the run as a whole.
func (h *EventRecorder) summarize(ctx context.Context, r reaper.Report, untold int) error {
	var pod *corev1.Pod
	err := Patiently(ctx, func(ctx context.Context) (err error) {
		pod, err = h.pods.Pods(h.self.Namespace).Get(ctx, h.self.Name, metav1.GetOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("summary: get pod %s: %w", h.self, err)
	}
	note, kind := summary(r, untold)
	return h.create(ctx, r, eventsv1.Event{
		Type: kind, Reason: reasonReaped, Action: actionReap, Regarding: makerOf(pod), Note: note,
	})
}

// makerOf refers to the Job that made the pod, or to the pod itself.
func makerOf(pod *corev1.Pod) corev1.ObjectReference {
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "Job" {
		return corev1.ObjectReference{
			APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: pod.Namespace, Name: owner.Name, UID: owner.UID,
		}
	}
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

// summary says what the run did, and is a warning where something went wrong.
func summary(r reaper.Report, untold int) (note, kind string) {
	kind = corev1.EventTypeNormal
	if r.Summary.Failed > 0 || len(r.Warnings) > 0 {
		kind = corev1.EventTypeWarning
	}
	parts := []string{
		fmt.Sprintf("released %d of %d allocations", r.Summary.Released, r.Summary.Entries),
		fmt.Sprintf("%d suspected, %d failed (%s)", r.Summary.Suspected, r.Summary.Failed, r.Run.ID),
	}
	if untold > 0 {
		parts = append(parts, fmt.Sprintf("%d more releases have no event of their own", untold))
	}
	for _, b := range r.Backends {
		if b.Status == reaper.StatusFailed || b.Status == reaper.StatusPartial {
			kind = corev1.EventTypeWarning
			parts = append(parts, fmt.Sprintf("%s %s: %s", b.Name, b.Status, b.Message))
		}
	}
	return strings.Join(append(parts, r.Warnings...), "; "), kind
}

// releaseEvent tells of one release. It is a warning where something of the
// entry is left.
func releaseEvent(run string, released reaper.Release) eventsv1.Event {
	e, o := released.Entry, released.Object
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

// create completes the event and writes it.
func (h *EventRecorder) create(ctx context.Context, r reaper.Report, e eventsv1.Event) error {
	// An API server accepts no other namespace for what has none but kube-system
	// (legacyValidateEvent in k8s.io/kubernetes/pkg/apis/core/validation/events.go).
	e.Namespace = cmp.Or(e.Regarding.Namespace, metav1.NamespaceDefault)
	// The name is ours, and not generated: a second try must not tell twice.
	e.Name = "ip-reaper." + strings.ToLower(rand.Text())
	e.EventTime = metav1.NewMicroTime(slices.MaxFunc([]time.Time{r.Run.StartedAt, r.Run.FinishedAt}, time.Time.Compare))
	e.ReportingController = h.controller
	instance := cmp.Or(h.self.Name, r.Run.ID)
	e.ReportingInstance = instance[:min(len(instance), maxInstance)]
	e.Note = shorten(e.Note, maxNote)
	err := Patiently(ctx, func(ctx context.Context) error {
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

// shorten returns a text of at most so many bytes, in UTF-8: all of it, or the
// beginning and an ellipsis.
func shorten(text string, limit int) string {
	const more = "…"
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}
