package calico

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// An api is an HTTP server that answers requests as the test says, by method and path
// after /apis/, such as "GET crd.projectcalico.org/v1/ipamblocks". It compares nothing
// and stores nothing.
type api struct {
	mu      sync.Mutex
	answers map[string]http.HandlerFunc
	n       int // the number of requests
}

// newAPI starts the server and returns a backend over it. For a path without an
// answer, the server says that the object does not exist.
func newAPI(t *testing.T, answers map[string]http.HandlerFunc) (*api, *Backend) {
	t.Helper()
	a := &api{answers: answers}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	client, err := kube.RawClient(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	b := NewKubernetes(client, handlesAtOnce)
	return a, b
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/apis/")
	a.mu.Lock()
	a.n++
	answer := a.answers[r.Method+" "+path]
	a.mu.Unlock()
	if answer == nil {
		answer = absent(path)
	}
	answer(w, r)
}

// requests returns the number of requests.
func (a *api) requests() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
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
	return say(fmt.Sprintf(`{"kind":"List","metadata":{"resourceVersion":"99"},"items":[%s]}`, strings.Join(documents, ",")))
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

// absent answers that there is no object at the path, group/version/resource/name.
func absent(path string) http.HandlerFunc {
	parts := strings.Split(path+"///", "/")
	return refuse(apierrors.NewNotFound(schema.GroupResource{Group: parts[0], Resource: parts[2]}, parts[3]))
}

// html answers as a proxy in front of the API server does.
func html(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(code)
		fmt.Fprintf(w, "<html><body><h1>%d %s</h1></body></html>", code, http.StatusText(code))
	}
}

// first answers the first request with one, and all later ones with the other.
func first(one, other http.HandlerFunc) http.HandlerFunc {
	var once sync.Once
	return func(w http.ResponseWriter, r *http.Request) {
		answer := other
		once.Do(func() { answer = one })
		answer(w, r)
	}
}
