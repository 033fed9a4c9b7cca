package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

var pods = schema.GroupResource{Resource: "pods"}

// inProtobuf and inJSON are the wire forms that an API server answers in.
var (
	inProtobuf = wireForm{runtime.ContentTypeProtobuf, func(obj runtime.Object) ([]byte, error) {
		return runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), obj)
	}}
	inJSON = wireForm{runtime.ContentTypeJSON, func(obj runtime.Object) ([]byte, error) { return json.Marshal(obj) }}
)

type wireForm struct {
	contentType string
	encode      func(runtime.Object) ([]byte, error)
}

// say answers with an object.
func (f wireForm) say(obj runtime.Object) http.HandlerFunc { return f.answer(http.StatusOK, obj) }

// refuse answers as the API server does: with a Status.
func (f wireForm) refuse(err *apierrors.StatusError) http.HandlerFunc {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return f.answer(int(status.Code), &status)
}

func (f wireForm) answer(code int, obj runtime.Object) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		data, err := f.encode(obj)
		if err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", f.contentType)
		w.WriteHeader(code)
		_, _ = w.Write(data)
	}
}

// plain answers with a text that is no Status, as a proxy on the way does.
func plain(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "404 page not found", code) }
}

// say answers with a JSON document.
func say(document string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = io.WriteString(w, document)
	}
}

// newCluster is a Cluster over clients like those of the program, and a server
// that answers each path by its handler. It fails the test where a request
// names a resourceVersion, for then it would not be a quorum read.
func newCluster(t *testing.T, answers map[string]http.HandlerFunc) *Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Has("resourceVersion") || q.Has("resourceVersionMatch") {
			t.Errorf("%s is no quorum read", r.URL)
		}
		answer := answers[r.URL.Path]
		if answer == nil && r.URL.Path == "/version" {
			answer = say(`{"gitVersion": "v1.33.9"}`) // reads pods page by page
		}
		if answer == nil {
			t.Errorf("unexpected request: %s %s", r.Method, r.URL.Path)
			answer = plain(http.StatusBadRequest)
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return clusterAt(t, server.URL)
}

func clusterAt(t *testing.T, host string) *Cluster {
	t.Helper()
	config := &rest.Config{Host: host, QPS: -1, ContentConfig: rest.ContentConfig{
		ContentType:        runtime.ContentTypeProtobuf,
		AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
	}}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	apps, err := appsv1client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := kube.RawClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return NewCluster(core, apps, raw)
}

func TestPodIsAbsentOnlyIfTheAPIServerSaysSo(t *testing.T) {
	const path = "/api/v1/namespaces/default/pods/web-0"
	otherName := apierrors.NewNotFound(pods, "web-1")
	proxied := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", pods, "web-0", "no backend", 0, true)
	bare := apierrors.NewNotFound(pods, "web-0")
	bare.ErrStatus.Details = nil
	for _, tt := range []struct {
		name   string
		answer func(wireForm) http.HandlerFunc
		want   census.Presence
	}{
		{"there", func(f wireForm) http.HandlerFunc { return f.say(running(nil)) }, census.Present},
		{"no such pod", func(f wireForm) http.HandlerFunc { return f.refuse(apierrors.NewNotFound(pods, "web-0")) }, census.Absent},
		{"a proxy knows no such path", func(wireForm) http.HandlerFunc { return plain(http.StatusNotFound) }, census.Unknown},
		{"a proxy says so in a Status", func(f wireForm) http.HandlerFunc { return f.refuse(proxied) }, census.Unknown},
		{"a Status without details", func(f wireForm) http.HandlerFunc { return f.refuse(bare) }, census.Unknown},
		{"no such namespace", func(f wireForm) http.HandlerFunc {
			return f.refuse(apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "web-0"))
		}, census.Unknown},
		{"another pod is gone", func(f wireForm) http.HandlerFunc { return f.refuse(otherName) }, census.Unknown},
		{"expired", func(f wireForm) http.HandlerFunc { return f.refuse(apierrors.NewResourceExpired("old")) }, census.Unknown},
		{"forbidden", func(f wireForm) http.HandlerFunc {
			return f.refuse(apierrors.NewForbidden(pods, "web-0", errors.New("no")))
		}, census.Unknown},
		{"unauthorized", func(f wireForm) http.HandlerFunc { return f.refuse(apierrors.NewUnauthorized("no")) }, census.Unknown},
		{"broken", func(f wireForm) http.HandlerFunc { return f.refuse(apierrors.NewInternalError(errors.New("etcd"))) }, census.Unknown},
		{"timeout", func(f wireForm) http.HandlerFunc { return f.refuse(apierrors.NewTimeoutError("etcd", 0)) }, census.Unknown},
		{"proxy broken", func(wireForm) http.HandlerFunc { return plain(http.StatusBadGateway) }, census.Unknown},
		{"empty answer", func(wireForm) http.HandlerFunc { return func(http.ResponseWriter, *http.Request) {} }, census.Unknown},
	} {
		for _, form := range []wireForm{inProtobuf, inJSON} {
			t.Run(tt.name+" in "+form.contentType, func(t *testing.T) {
				c := newCluster(t, map[string]http.HandlerFunc{path: tt.answer(form)})
				pod, got, err := c.Pod(t.Context(), ipam.PodRef{Namespace: "default", Name: "web-0"})
				if got != tt.want || (err != nil) != (tt.want == census.Unknown) {
					t.Errorf("Pod = %v, %v, want %v, with an error if that is not known", got, err, tt.want)
				}
				if named := pod.Ref.Name == "web-0"; named != (tt.want == census.Present) {
					t.Errorf("Pod = %+v where the presence is %v", pod, got)
				}
			})
		}
	}
	t.Run("no server", func(t *testing.T) {
		_, got, err := clusterAt(t, "http://127.0.0.1:1").Pod(t.Context(), ipam.PodRef{Namespace: "default", Name: "web-0"})
		if got != census.Unknown || err == nil {
			t.Errorf("Pod = %v, %v, want it unknown, with an error", got, err)
		}
	})
}

// The wait belongs to the run, which looks at other pods meanwhile.
func TestPodIsAskedForOnce(t *testing.T) {
	ref := ipam.PodRef{Namespace: "default", Name: "web-0"}
	busy := apierrors.NewTooManyRequests("later", 7)
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		after  time.Duration
	}{
		{"busy", inProtobuf.refuse(busy), 7 * time.Second},
		{"busy, in JSON", inJSON.refuse(busy), 7 * time.Second},
		{"busy, in words", plain(http.StatusTooManyRequests), 7 * time.Second},
		{"broken", plain(http.StatusServiceUnavailable), 7 * time.Second},
		{"no answer", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked atomic.Int32
			c := newCluster(t, map[string]http.HandlerFunc{
				"/api/v1/namespaces/default/pods/web-0": func(w http.ResponseWriter, r *http.Request) {
					asked.Add(1)
					w.Header().Set("Retry-After", "7")
					tt.answer(w, r)
				},
			})
			_, presence, err := c.Pod(t.Context(), ref)
			var wait *ipam.RetryAfterError
			if presence != census.Unknown || !errors.As(err, &wait) || wait.After != tt.after {
				t.Errorf("Pod = %v, %v, want it unknown, and to come back after %v", presence, err, tt.after)
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("%d requests, want one", n)
			}
		})
	}
}

// A pager answers with the pages of a list.
type pager struct {
	form  wireForm
	pages []runtime.Object // page n leads to "n+1"
}

func (p *pager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &n)
	list, ok := p.pages[n].(metav1.ListMetaAccessor)
	if !ok {
		panic("a page is no list")
	}
	list.GetListMeta().SetResourceVersion("99")
	p.form.say(p.pages[n])(w, r)
}

// listOf is a list of pods, as an API server sends it.
func listOf(pods ...*corev1.Pod) *corev1.PodList {
	list := &corev1.PodList{
		TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "99"},
	}
	for _, pod := range pods {
		list.Items = append(list.Items, *pod)
	}
	return list
}

// podPages are three pages of a pod each.
func podPages() []runtime.Object {
	var all []runtime.Object
	for n := range 3 {
		list := listOf(running(func(p *corev1.Pod) { p.Name = fmt.Sprintf("web-%d", n) }))
		if n < 2 {
			list.Continue = fmt.Sprint(n + 1)
		}
		all = append(all, list)
	}
	return all
}

// A pod that is left out, or an address of it, could be released.
func TestPodsReadsEveryPage(t *testing.T) {
	for _, form := range []wireForm{inProtobuf, inJSON} {
		t.Run(form.contentType, func(t *testing.T) {
			p := &pager{form: form, pages: podPages()}
			got, err := newCluster(t, map[string]http.HandlerFunc{"/api/v1/pods": p.ServeHTTP}).Pods(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, pod := range got {
				names = append(names, pod.Ref.String())
				if !slices.Contains(shown(pod.Addresses), "10.1.0.1") {
					t.Errorf("%s shows %v, want 10.1.0.1", pod.Ref, pod.Addresses)
				}
			}
			if diff := cmp.Diff([]string{"default/web-0", "default/web-1", "default/web-2"}, names); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatefulSetsReadsEveryPage(t *testing.T) {
	set := func(name string, replicas int32) appsv1.StatefulSet {
		return appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}}
	}
	meta := metav1.TypeMeta{Kind: "StatefulSetList", APIVersion: "apps/v1"}
	p := &pager{form: inProtobuf, pages: []runtime.Object{
		&appsv1.StatefulSetList{TypeMeta: meta, ListMeta: metav1.ListMeta{Continue: "1"}, Items: []appsv1.StatefulSet{set("web", 3)}},
		&appsv1.StatefulSetList{TypeMeta: meta, Items: []appsv1.StatefulSet{set("db", 0)}},
	}}
	got, err := newCluster(t, map[string]http.HandlerFunc{"/apis/apps/v1/statefulsets": p.ServeHTTP}).StatefulSets(t.Context())
	want := []census.StatefulSet{{Namespace: "default", Name: "web", Replicas: 3}, {Namespace: "default", Name: "db"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("StatefulSets: %v (-want +got):\n%s", err, diff)
	}
}

func TestNodesReadsEveryPage(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
		}}
	}
	meta := metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}
	p := &pager{form: inProtobuf, pages: []runtime.Object{
		&corev1.NodeList{TypeMeta: meta, ListMeta: metav1.ListMeta{Continue: "1"}, Items: []corev1.Node{node("a", corev1.ConditionTrue)}},
		&corev1.NodeList{TypeMeta: meta, Items: []corev1.Node{node("b", corev1.ConditionUnknown)}},
	}}
	got, err := newCluster(t, map[string]http.HandlerFunc{"/api/v1/nodes": p.ServeHTTP}).Nodes(t.Context())
	want := []census.Node{{Name: "a", Ready: true}, {Name: "b", Lost: true}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Nodes: %v (-want +got):\n%s", err, diff)
	}
}
