package whereabouts

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

const (
	root          = "/apis/whereabouts.cni.cncf.io/v1alpha1/"
	aPool         = "kube-system/10.0.0.0-24"
	poolAt        = "namespaces/kube-system/ippools/10.0.0.0-24"
	anOverlapping = "kube-system/10.0.0.4"
	overlappingAt = "namespaces/kube-system/overlappingrangeipreservations/10.0.0.4"

	listAttachments = "GET /apis/k8s.cni.cncf.io/v1/network-attachment-definitions"
	listSlices      = "GET nodeslicepools"
)

// An api is an HTTP server that answers and records requests as the test says. It compares
// nothing and stores nothing.
type api struct {
	t       *testing.T
	answers map[string]http.HandlerFunc // by method and path, such as "GET ippools"

	mu   sync.Mutex
	sent []request
}

// A request is a request that the server received.
type request struct {
	Call string // method and path
	Type string // the content type of the body
	Body string
	URL  string
}

// newAPI starts the server and returns a client for it. A request without an answer fails the
// test. Unless the test sets another answer, there are no network attachments and no NodeSlicePools.
func newAPI(t *testing.T, answers map[string]http.HandlerFunc) (*api, rest.Interface) {
	t.Helper()
	for _, list := range []string{listAttachments, listSlices} {
		if answers[list] == nil {
			answers[list] = items()
		}
	}
	a := &api{t: t, answers: answers}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return a, clientOf(t, server.URL)
}

// atOnce is what --concurrency is unless a test is about it.
const atOnce = 32

func clientOf(t *testing.T, host string) rest.Interface {
	t.Helper()
	client, err := kube.RawClient(&rest.Config{Host: host, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		a.t.Errorf("read the request: %v", err)
	}
	if r.URL.Path == "/version" {
		_, _ = io.WriteString(w, `{"gitVersion":"v1.33.9"}`) // its lists are read page by page
		return
	}
	call := r.Method + " " + strings.TrimPrefix(r.URL.Path, root)
	a.mu.Lock()
	a.sent = append(a.sent, request{call, r.Header.Get("Content-Type"), string(body), r.URL.String()})
	answer := a.answers[call]
	a.mu.Unlock()
	if answer == nil {
		a.t.Errorf("unexpected request: %s", call)
		answer = refuse(apierrors.NewBadRequest("unexpected"))
	}
	answer(w, r)
}

// answer sets the answer to a call, and forgets the requests so far.
func (a *api) answer(call string, with http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[call], a.sent = with, nil
}

// calls returns the method and path of every request, in order.
func (a *api) calls() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	calls := []string{}
	for _, r := range a.sent {
		calls = append(calls, r.Call)
	}
	return calls
}

// bodies returns the requests of one call.
func (a *api) bodies(call string) []request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.sent), func(r request) bool { return r.Call != call })
}

// say answers with a JSON document.
func say(document string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, document)
	}
}

// items answers with a list of documents.
func items(documents ...string) http.HandlerFunc {
	return say(fmt.Sprintf(`{"kind": "List", "metadata": {"resourceVersion": "99"}, "items": [%s]}`, strings.Join(documents, ",")))
}

// refuse answers with a Status, as the API server does.
func refuse(err *apierrors.StatusError) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		status := err.Status()
		status.Kind, status.APIVersion = "Status", "v1"
		w.Header().Set("Content-Type", "application/json")
		if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(status.Details.RetryAfterSeconds))
		}
		w.WriteHeader(int(status.Code))
		_ = json.NewEncoder(w).Encode(status)
	}
}

// plain answers with a text that is not a Status, like a proxy in front of the API server.
func plain(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "404 page not found", code) }
}

// first answers the first request with one, all later ones with other.
func first(one, other http.HandlerFunc) http.HandlerFunc {
	var once sync.Once
	return func(w http.ResponseWriter, r *http.Request) {
		answer := other
		once.Do(func() { answer = one })
		answer(w, r)
	}
}

var (
	poolResources        = schema.GroupResource{Group: "whereabouts.cni.cncf.io", Resource: poolResource}
	overlappingResources = schema.GroupResource{Group: "whereabouts.cni.cncf.io", Resource: overlappingResource}
)

// failedTest is the API server's answer to a JSON patch whose test failed.
func failedTest() *apierrors.StatusError {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "",
		"testing value /spec/allocations/4 failed: test failed", 0, false)
}

// brokenSchema is the API server's answer to a write after which the object would
// break its schema.
func brokenSchema() *apierrors.StatusError { return brokenAt("9") }

func brokenAt(key string) *apierrors.StatusError {
	field := "spec.allocations." + key + ".podref"
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: `IPPool "10.0.0.0-24" is invalid: ` + field + `: Required value`,
		Details: &metav1.StatusDetails{Kind: "IPPool", Name: "10.0.0.0-24", Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldValueRequired, Field: field, Message: "Required value"},
		}},
	}}
}
