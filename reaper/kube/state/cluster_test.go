package state

import (
	"encoding/json"
	"errors"
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

// inProtobuf and inJSON are the wire formats that an API server answers in.
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

// plain answers with a text that is not a Status, like a proxy on the way.
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

// newCluster returns a Cluster over clients like the program's, and a server that answers each
// path with its handler. It fails the test if a request names a resourceVersion, which would
// not be a quorum read.
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
		{"forbidden", func(f wireForm) http.HandlerFunc {
			return f.refuse(apierrors.NewForbidden(pods, "web-0", errors.New("no")))
		}, census.Unknown},
		{"broken", func(f wireForm) http.HandlerFunc { return f.refuse(apierrors.NewInternalError(errors.New("etcd"))) }, census.Unknown},
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

// Waiting is up to the run, which looks at other pods meanwhile.
func TestPodIsAskedForOnce(t *testing.T) {
	ref := ipam.PodRef{Namespace: "default", Name: "web-0"}
	busy := apierrors.NewTooManyRequests("later", 7)
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		after  time.Duration
	}{
		{"busy", inProtobuf.refuse(busy), 7 * time.Second},
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

// listOf is a list of pods as an API server sends it.
func listOf(pods ...*corev1.Pod) *corev1.PodList {
	list := &corev1.PodList{
		TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "99"},
	}
	for _, pod := range pods {
		list.Items = append(list.Items, *pod)
	}
	return list
}

// If a pod or one of its addresses were left out, it could be released. Tests in reaper/kube
// prove that every page is read.
func TestListsOfTheCensus(t *testing.T) {
	for _, form := range []wireForm{inProtobuf, inJSON} {
		t.Run(form.contentType, func(t *testing.T) {
			meta := metav1.ListMeta{ResourceVersion: "99"}
			c := newCluster(t, map[string]http.HandlerFunc{
				"/api/v1/pods": form.say(listOf(running(nil), running(func(p *corev1.Pod) { p.Name = "web-1" }))),
				"/apis/apps/v1/statefulsets": form.say(&appsv1.StatefulSetList{
					TypeMeta: metav1.TypeMeta{Kind: "StatefulSetList", APIVersion: "apps/v1"}, ListMeta: meta,
					Items: []appsv1.StatefulSet{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}}},
				}),
				"/api/v1/nodes": form.say(&corev1.NodeList{
					TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: meta,
					Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NodeStatus{
						Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
					}}},
				}),
			})
			pods, err := c.Pods(t.Context())
			if err != nil || len(pods) != 2 || pods[1].Ref.Name != "web-1" || !slices.Contains(shown(pods[1].Addresses), "10.1.0.1") {
				t.Errorf("Pods = %+v, %v, want two with their addresses", pods, err)
			}
			sets, err := c.StatefulSets(t.Context())
			if diff := cmp.Diff([]census.StatefulSet{{Namespace: "default", Name: "web", Replicas: 3}}, sets); err != nil || diff != "" {
				t.Errorf("StatefulSets: %v (-want +got):\n%s", err, diff)
			}
			nodes, err := c.Nodes(t.Context())
			if diff := cmp.Diff([]census.Node{{Name: "a", Ready: true}}, nodes); err != nil || diff != "" {
				t.Errorf("Nodes: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
