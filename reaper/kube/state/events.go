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
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// The reasons of the events that say why a pod waits: the kubelet, the scheduler and Multus write them.
var waitingReasons = []string{"FailedCreatePodSandBox", failedScheduling, "NoNetworkFound"}

const failedScheduling = "FailedScheduling"

// mostEvents is how many events of one pod are read. The kubelet writes at most ten of a kind in an hour, and
// then counts ("combined from similar events").
const mostEvents = 100

// events returns what the Warning events of a pod say of why it waits, the newest first. They are of this pod,
// not of an earlier one of its name.
func (c *Cluster) events(ctx context.Context, pod *corev1.Pod) ([]report.Event, error) {
	var list corev1.EventList
	of := "involvedObject.uid=" + string(pod.UID) + ",type=" + corev1.EventTypeWarning
	request := c.core.Get().Namespace(pod.Namespace).Resource("events").Param("fieldSelector", of).Param("limit", fmt.Sprint(mostEvents))
	if err := request.Do(ctx).Into(&list); err != nil {
		return nil, kube.Answered(unreadOr(err))
	}
	if list.Continue != "" {
		return nil, fmt.Errorf("there are more than %d", mostEvents)
	}
	return eventsOf(pod, list.Items), nil
}

// Evidence returns the lists by which an explanation says why pods wait, for a dump: the namespaces of those pods,
// and their events. It leaves out a list that the account may not read, and one that would not be whole.
func (c *Cluster) Evidence(ctx context.Context, pods []census.Pod) map[string]kube.RecordedList {
	const mostNamespaces, mostOfNamespace = 50, 500
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
		var list corev1.EventList
		request := c.core.Get().Namespace(name).Resource("events").Param("fieldSelector", "type="+corev1.EventTypeWarning).Param("limit", fmt.Sprint(mostOfNamespace))
		err := request.Do(ctx).Into(&list)
		whole = whole && err == nil && list.Continue == ""
		for i := range list.Items {
			if e := &list.Items[i]; waiting[e.InvolvedObject.UID] && slices.Contains(waitingReasons, e.Reason) {
				ofEvents.Items = append(ofEvents.Items, dumped("Event", e))
			}
		}
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
		of := text{e.Reason, report.PluginSays(e.Message)}
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
	if e.Series != nil {
		last, count = e.Series.LastObservedTime.Time, e.Series.Count
	}
	if last.IsZero() {
		last = first
	}
	return first.UTC(), last.UTC(), max(1, count)
}
