package state

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// The reasons of the events that say why a pod waits: the kubelet, the scheduler and Multus write them.
var waitingReasons = []string{"FailedCreatePodSandBox", failedScheduling, "NoNetworkFound"}

const failedScheduling = "FailedScheduling"

// eventsOfPage is how many events are read at once, and of one pod. The kubelet writes at most ten of a kind in an hour,
// and then counts ("combined from similar events").
const eventsOfPage = 100

// warnings hands out the Warning events of a namespace, some at once. It is an error if there are more than these pages.
func (c *Cluster) warnings(ctx context.Context, namespace, selector string, pages int, each func([]corev1.Event)) error {
	next := ""
	for range pages {
		var list corev1.EventList
		err := c.core.Get().Namespace(namespace).Resource("events").
			Param("fieldSelector", selector+"type="+corev1.EventTypeWarning).
			Param("limit", fmt.Sprint(eventsOfPage)).
			Param("continue", next).
			Do(ctx).Into(&list)
		if err != nil {
			return kube.Answered(unreadOr(err))
		}
		each(list.Items)
		if next = list.Continue; next == "" {
			return nil
		}
	}
	return fmt.Errorf("there are more than %d", pages*eventsOfPage)
}

// events returns what the Warning events of a pod say of why it waits, the newest first. They are of this pod,
// not of an earlier one of its name.
func (c *Cluster) events(ctx context.Context, pod *corev1.Pod) (found []report.Event, err error) {
	err = c.warnings(ctx, pod.Namespace, "involvedObject.uid="+string(pod.UID)+",", 1, func(all []corev1.Event) { found = eventsOf(pod, all) })
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Evidence returns the lists by which an explanation says why pods wait, for a dump: the namespaces of those pods,
// and their events. It leaves out a list that the account may not read, and one that would not be whole.
func (c *Cluster) Evidence(ctx context.Context, pods []census.Pod) map[string]kube.RecordedList {
	const mostNamespaces, mostPages = 50, 100
	waiting := make(map[types.UID]bool)
	namespaces := make(map[string]bool)
	for i := range pods {
		if p := &pods[i]; p.Waits() {
			waiting[types.UID(p.UID)] = true
			namespaces[p.Ref.Namespace] = true
		}
	}
	if len(namespaces) > mostNamespaces {
		return nil
	}
	ofNamespaces := kube.RecordedList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"}}
	ofEvents := kube.RecordedList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}}
	whole := true
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		namespace := new(corev1.Namespace)
		if err := c.core.Get().Resource("namespaces").Name(name).Do(ctx).Into(namespace); err == nil {
			ofNamespaces.Items = append(ofNamespaces.Items, dumped("Namespace", namespace))
		}
		err := c.warnings(ctx, name, "", mostPages, func(all []corev1.Event) {
			for i := range all {
				if e := &all[i]; waiting[e.InvolvedObject.UID] && slices.Contains(waitingReasons, e.Reason) {
					e.Message = printable.Shorten(e.Message, printable.MaxText)
					ofEvents.Items = append(ofEvents.Items, dumped("Event", e))
				}
			}
		})
		whole = whole && err == nil
	}
	lists := map[string]kube.RecordedList{"/api/v1/namespaces": ofNamespaces}
	if whole {
		lists["/api/v1/events"] = ofEvents
	}
	return lists
}

// dumped returns what a dump has of an object of core/v1.
func dumped(kind string, object any) json.RawMessage {
	text, _ := json.Marshal(object) // it was decoded
	return Dumped(kind, text)
}

// unreadOr returns what files lack, without the request for it, if that is the error.
func unreadOr(err error) error {
	if unread, is := errors.AsType[*ipam.UnreadError](err); is {
		return unread
	}
	return err
}

// eventsOf returns what events say of why a pod waits. Files have events of other pods, too. The scheduler no longer
// has a say once the pod has a node.
func eventsOf(pod *corev1.Pod, all []corev1.Event) []report.Event {
	type text struct{ reason, says string }
	found := make(map[text]*report.Event)
	for i := range all {
		e := &all[i]
		settled := e.Reason == failedScheduling && pod.Spec.NodeName != ""
		if e.InvolvedObject.UID != pod.UID || !slices.Contains(waitingReasons, e.Reason) || settled {
			continue
		}
		of := text{e.Reason, report.PluginSays(printable.Shorten(e.Message, printable.MaxText))}
		first, last, count := timesOf(e)
		one := found[of]
		if one == nil {
			one = &report.Event{Reason: of.reason, Says: of.says, Since: first, Last: last}
			found[of] = one
		}
		one.Count += count
		if first.Before(one.Since) {
			one.Since = first
		}
		if last.After(one.Last) {
			one.Last = last
		}
	}
	events := make([]report.Event, 0, len(found))
	for _, one := range found {
		events = append(events, *one)
	}
	slices.SortFunc(events, func(a, b report.Event) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Reason, b.Reason), strings.Compare(a.Says, b.Says))
	})
	return events
}

// timesOf returns when an event came first and last, and how often. The scheduler writes the form of
// events.k8s.io, which has other fields.
func timesOf(e *corev1.Event) (first, last time.Time, count int32) {
	first, last, count = e.FirstTimestamp.Time, e.LastTimestamp.Time, e.Count
	if first.IsZero() {
		first = e.EventTime.Time
	}
	if first.IsZero() {
		first = e.CreationTimestamp.Time
	}
	if e.Series != nil {
		last, count = e.Series.LastObservedTime.Time, e.Series.Count
	}
	if last.IsZero() {
		last = first
	}
	return first.UTC(), last.UTC(), max(1, count)
}
