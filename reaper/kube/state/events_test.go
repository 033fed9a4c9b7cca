package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// eventFor returns an event of a pod.
func eventFor(uid types.UID, reason, message string) corev1.Event {
	return corev1.Event{InvolvedObject: corev1.ObjectReference{UID: uid}, Type: corev1.EventTypeWarning, Reason: reason, Message: message}
}

// The events of the pod that waits are asked for, by its UID and not more than some. If they are not all there, nothing
// is known of them: none is not "no event".
func TestEventsOfAPodThatWaits(t *testing.T) {
	const uid = "u1"
	waits := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: uid}, Spec: corev1.PodSpec{NodeName: "n1"}}
	waits.Status.Phase = corev1.PodPending
	runs := *waits.DeepCopy()
	runs.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.0.1"}
	nowhere := *waits.DeepCopy()
	nowhere.Spec.NodeName = ""
	failed := eventFor(uid, "FailedCreatePodSandBox", "full")
	unplaced := eventFor(uid, "FailedScheduling", "no node")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", fmt.Errorf(`User "jane" cannot list resource "events"`))
	for name, tt := range map[string]struct {
		pod    corev1.Pod
		answer http.HandlerFunc // nil if nothing is to be asked
		says   []string
		why    string
	}{
		"a pod that waits":             {waits, inProtobuf.say(&corev1.EventList{Items: []corev1.Event{failed}}), []string{"full"}, ""},
		"no event":                     {waits, inProtobuf.say(&corev1.EventList{}), nil, ""},
		"a pod without a node":         {nowhere, inProtobuf.say(&corev1.EventList{Items: []corev1.Event{unplaced}}), []string{"no node"}, ""},
		"what the scheduler once said": {waits, inProtobuf.say(&corev1.EventList{Items: []corev1.Event{unplaced}}), nil, ""},
		"a pod that runs":              {runs, nil, nil, ""},
		"no right":                     {waits, inProtobuf.refuse(forbidden), nil, `cannot list resource "events"`},
		"more than are read": {
			waits, inProtobuf.say(&corev1.EventList{ListMeta: metav1.ListMeta{Continue: "x"}, Items: []corev1.Event{failed}}), nil, "there are more than 100",
		},
	} {
		t.Run(name, func(t *testing.T) {
			answers := map[string]http.HandlerFunc{
				"/api/v1/namespaces/shop/pods": inProtobuf.say(&corev1.PodList{Items: []corev1.Pod{tt.pod}}),
				"/api/v1/namespaces/shop":      inProtobuf.refuse(forbidden), // says no more than that it was not read
			}
			if tt.answer != nil {
				answers["/api/v1/namespaces/shop/events"] = func(w http.ResponseWriter, r *http.Request) {
					if q := r.URL.Query(); q.Get("fieldSelector") != "involvedObject.uid=u1,type=Warning" || q.Get("limit") != "100" {
						t.Errorf("asked for %s", r.URL)
					}
					tt.answer(w, r)
				}
			}
			asking, err := newCluster(t, answers).Asking(t.Context(), "shop", "web")
			if err != nil || len(asking) != 1 {
				t.Fatalf("Asking: %+v, %v", asking, err)
			}
			var says []string
			for _, e := range asking[0].Events {
				says = append(says, e.Says)
			}
			if why := asking[0].EventsUnknown; !slices.Equal(says, tt.says) || !strings.Contains(why, tt.why) || (why == "") != (tt.why == "") {
				t.Errorf("events %q, unknown because of %q; want %q, %q", says, why, tt.says, tt.why)
			}
		})
	}
}

// The time of an event is in other fields if the scheduler wrote it, or somebody by hand.
func TestTimesOfAnEvent(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC) }
	for name, tt := range map[string]struct {
		event       corev1.Event
		first, last time.Time
		count       int32
	}{
		"the kubelet":   {corev1.Event{FirstTimestamp: metav1.NewTime(at(1)), LastTimestamp: metav1.NewTime(at(9)), Count: 5}, at(1), at(9), 5},
		"the scheduler": {corev1.Event{EventTime: metav1.NewMicroTime(at(1))}, at(1), at(1), 1},
		"a series": {
			corev1.Event{EventTime: metav1.NewMicroTime(at(1)), Series: &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(at(9))}},
			at(1), at(9), 7,
		},
		"by hand": {corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(3))}, Count: -1}, at(3), at(3), 1},
	} {
		if first, last, count := timesOf(&tt.event); first != tt.first || last != tt.last || count != tt.count {
			t.Errorf("%s: %v, %v, %d", name, first, last, count)
		}
	}
}

// A dump has the events of the pods that wait, and the namespaces of these; of a list that is not whole, it has none.
func TestDumpHasTheEventsOfPodsThatWait(t *testing.T) {
	pods := []census.Pod{
		{Ref: ipam.PodRef{Namespace: "shop", Name: "hangs"}, UID: "u1", Node: "n1", AddressUnknown: true},
		{Ref: ipam.PodRef{Namespace: "cart", Name: "lacks"}, UID: "u2", Node: "n1", LeavesOut: true},
		{Ref: ipam.PodRef{Namespace: "cart", Name: "homeless"}, UID: "u3"},
		{Ref: ipam.PodRef{Namespace: "other", Name: "runs"}, UID: "u4", Node: "n1"},
		{Ref: ipam.PodRef{Namespace: "other", Name: "done"}, UID: "u5", Finished: true},
	}
	namespace := func(name string) http.HandlerFunc {
		return inProtobuf.say(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			"cni.projectcalico.org/ipv4pools": `["a"]`, "secret": "hunter2",
		}}})
	}
	events := func(more string, all ...corev1.Event) http.HandlerFunc {
		for i := range all {
			all[i].Name = fmt.Sprint("e", i)
		}
		return inProtobuf.say(&corev1.EventList{ListMeta: metav1.ListMeta{Continue: more}, Items: all})
	}
	const long = 9 << 10
	ofShop := []corev1.Event{
		eventFor("u1", "FailedCreatePodSandBox", "full"), eventFor("u1", "BackOff", "hunter2"), eventFor("u4", "FailedCreatePodSandBox", "hunter2"),
	}
	paged := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("continue") == "" {
			events("x", ofShop...)(w, r)
			return
		}
		events("", eventFor("u1", "FailedCreatePodSandBox", strings.Repeat("x", long)))(w, r)
	}
	ofCart := events("", eventFor("u2", "NoNetworkFound", "lan"), eventFor("u3", "FailedScheduling", "no node"))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", nil)
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   []string // the messages; nil if there is no list
	}{
		"all":          {events("", ofShop...), []string{"lan", "no node", "full"}},
		"two pages":    {paged, []string{"lan", "no node", "full", strings.Repeat("x", 4<<10-3) + "…"}},
		"too many":     {events("x", ofShop...), nil},
		"not allowed":  {inProtobuf.refuse(forbidden), nil},
		"none at all":  {events(""), []string{"lan", "no node"}},
		"not a server": {plain(http.StatusNotFound), nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, map[string]http.HandlerFunc{
				"/api/v1/namespaces/shop": namespace("shop"), "/api/v1/namespaces/cart": inProtobuf.refuse(forbidden),
				"/api/v1/namespaces/shop/events": tt.answer, "/api/v1/namespaces/cart/events": ofCart,
			})
			lists := c.Evidence(t.Context(), pods)
			var got []string
			for _, item := range lists["/api/v1/events"].Items {
				var e corev1.Event
				if err := json.Unmarshal(item, &e); err != nil {
					t.Fatal(err)
				}
				got = append(got, e.Message)
			}
			_, there := lists["/api/v1/events"]
			if diff := cmp.Diff(tt.want, got); diff != "" || there != (tt.want != nil) {
				t.Errorf("events (-want +got), there: %v:\n%s", there, diff)
			}
			text := fmt.Sprintf("%s", lists["/api/v1/namespaces"].Items)
			if len(lists["/api/v1/namespaces"].Items) != 1 || !strings.Contains(text, "ipv4pools") || strings.Contains(text, "hunter2") {
				t.Errorf("namespaces %s, want that of shop with its IPPools and no more", text)
			}
		})
	}
	many := make([]census.Pod, 51)
	for i := range many {
		many[i] = census.Pod{Ref: ipam.PodRef{Namespace: fmt.Sprint("n", i), Name: "web"}, AddressUnknown: true}
	}
	if lists := newCluster(t, nil).Evidence(t.Context(), many); len(lists) != 0 {
		t.Errorf("of pods of 51 namespaces, a dump has %v", slices.Collect(maps.Keys(lists)))
	}
}

// What a pod asks for, and whether it waits. One that runs gets what it lacks only in its next sandbox: also if its
// network-status is of the sandbox before a reboot, of which the default network had another address.
func TestWhatAPodAsksFor(t *testing.T) {
	const earlier = `[{"name": "cbr0", "ips": ["10.1.0.9"], "default": true}, {"name": "shop/lan", "interface": "net1", "ips": ["10.2.0.1"]}]`
	const only = `[{"name": "cbr0", "ips": ["10.1.0.1"], "default": true}]`
	const whole = `[{"name": "cbr0", "ips": ["10.1.0.1"], "default": true}, {"name": "shop/lan", "interface": "net1", "ips": ["10.2.0.1"]}]`
	pending := corev1.PodStatus{Phase: corev1.PodPending}
	running := corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.0.1", PodIPs: []corev1.PodIP{{IP: "10.1.0.1"}}}
	type asked struct {
		Waits, Restart, Default bool
		Attachments             []string
	}
	lan := []string{"shop/lan"}
	for name, tt := range map[string]struct {
		status      corev1.PodStatus
		annotations map[string]string
		want        asked
	}{
		"no address":                         {pending, nil, asked{Waits: true, Default: true}},
		"a second network":                   {pending, map[string]string{networks: "lan"}, asked{true, false, true, lan}},
		"the same twice":                     {pending, map[string]string{networks: "lan,lan"}, asked{true, false, true, []string{"shop/lan", "shop/lan"}}},
		"another default network":            {pending, map[string]string{defaultNetwork: "shop/lan"}, asked{true, false, false, lan}},
		"another default network of Multus":  {pending, map[string]string{defaultNetwork: "vm"}, asked{true, false, false, []string{"kube-system/vm"}}},
		"another default network that lacks": {pending, map[string]string{defaultNetwork: "[{"}, asked{Waits: true}},
		"runs":                               {running, nil, asked{}},
		"runs with all":                      {running, map[string]string{networks: "lan", networkStatus: whole}, asked{Attachments: lan}},
		"runs without an interface":          {running, map[string]string{networks: "lan", networkStatus: only}, asked{Restart: true, Attachments: lan}},
		"runs since a reboot":                {running, map[string]string{networks: "lan", networkStatus: earlier}, asked{Restart: true, Attachments: lan}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: tt.annotations}, Spec: corev1.PodSpec{NodeName: "n1"}, Status: tt.status}
			a := readAsking(pod, readPod(pod))
			if diff := cmp.Diff(tt.want, asked{a.Waits, a.Restart, a.Default, a.Attachments}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", a.Why, diff)
			}
			if a.Waits == (a.Why != "") {
				t.Errorf("it waits: %v, and why not: %q", a.Waits, a.Why)
			}
		})
	}
}
