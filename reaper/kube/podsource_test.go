package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// A podServer has pods, a version, and an answer of its own to the requests for all of them
// at once. It answers other requests page by page.
type podServer struct {
	version string
	pods    []corev1.Pod
	atOnce  http.HandlerFunc // nil: all of them

	mu    sync.Mutex
	asked []string
}

func (s *podServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.RequestURI())
	s.mu.Unlock()
	query := r.URL.Query()
	switch {
	case r.URL.Path == "/version":
		say(fmt.Sprintf(`{"gitVersion": %q}`, s.version))(w, r)
		return
	case !query.Has("limit") && s.atOnce != nil:
		s.atOnce(w, r)
		return
	}
	list, from := listOf(s.pods...), 0
	if query.Has("limit") { // pages of two
		_, _ = fmt.Sscan(query.Get("continue"), &from)
		to := min(from+2, len(s.pods))
		if list.Items = s.pods[from:to]; to < len(s.pods) {
			list.Continue = fmt.Sprint(to)
		}
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	_, _ = w.Write(encoded(panics{}, list, true))
}

// panics ends a handler at an error.
type panics struct{}

func (panics) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// namesOf lists the pods of a server that has three of them, twice.
func namesOf(t *testing.T, s *podServer) (names []string, err error) {
	t.Helper()
	s.pods = namedPods(3)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c := clusterAt(t, server.URL)
	for range 2 {
		pods, err := c.Pods(t.Context())
		if err != nil {
			if pods != nil {
				t.Errorf("%d pods with %v", len(pods), err)
			}
			return nil, err
		}
		for _, pod := range pods {
			names = append(names, pod.Ref.Name)
		}
	}
	return names, nil
}

// Pods are listed at once where the API server can do it well.
func TestVersionDecidesHowPodsAreListed(t *testing.T) {
	atOnce := []string{"/version", "/api/v1/pods", "/api/v1/pods"}
	pages := []string{
		"/version", "/api/v1/pods?limit=500", "/api/v1/pods?continue=2&limit=5000", "/api/v1/pods?limit=500", "/api/v1/pods?continue=2&limit=5000",
	}
	for version, want := range map[string][]string{
		"v1.34.0": atOnce, "v1.34.2-gke.1700000": atOnce, "v1.37.1+k3s1": atOnce, "v2.0.0": atOnce,
		"v1.33.9": pages, "v1.9.0": pages, "": pages, "latest": pages, "1": pages,
	} {
		s := &podServer{version: version}
		names, err := namesOf(t, s)
		if diff := cmp.Diff([]string{"web-0", "web-1", "web-2", "web-0", "web-1", "web-2"}, names); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", version, err, diff)
		}
		if diff := cmp.Diff(want, s.asked); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

// Promise 1, 2. An answer that is not all of the list is never taken for all of it. Pages
// are read in its place, and from then on.
func TestAnswerThatIsNotTheWholeListIsReadByPages(t *testing.T) {
	list := encoded(t, listOf(namedPods(3)...), true)
	page := listOf(namedPods(1)...)
	page.Continue = "1"
	in := func(body []byte, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
			for pair := range slices.Chunk(header, 2) {
				w.Header().Set(pair[0], pair[1])
			}
			_, _ = w.Write(body)
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"cut, and the server ends the answer": in(list[:len(list)/2]),
		"cut between two pods":                in(list[:len(list)-len(emptyRest)-len(list)/4]),
		"cut, and its length is known":        in(list[:len(list)/2], "Content-Length", fmt.Sprint(len(list))),
		"cut in a chunk": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(list[:len(list)/2])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"cut after the last pod": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(list)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"a page":        in(encoded(t, page, true)),
		"nothing":       in(nil),
		"in JSON":       inJSON.say(listOf(namedPods(1)...)),
		"another":       inProtobuf.say(running(nil)),
		"broken":        plain(http.StatusBadGateway),
		"a busy server": inProtobuf.refuse(apierrors.NewTooManyRequests("later", 0)),
	} {
		t.Run(name, func(t *testing.T) {
			s := &podServer{version: "v1.34.0", atOnce: answer}
			names, err := namesOf(t, s)
			if diff := cmp.Diff([]string{"web-0", "web-1", "web-2", "web-0", "web-1", "web-2"}, names); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if n := len(slices.DeleteFunc(slices.Clone(s.asked), func(uri string) bool { return uri != "/api/v1/pods" })); n != 1 {
				t.Errorf("all pods were requested %d times, want once: %q", n, s.asked)
			}
		})
	}
}

// What is refused is refused on pages too.
func TestRefusedListIsNotReadByPages(t *testing.T) {
	s := &podServer{version: "v1.34.0", atOnce: inProtobuf.refuse(apierrors.NewForbidden(pods, "", errors.New("no")))}
	if _, err := namesOf(t, s); !apierrors.IsForbidden(err) || len(s.asked) != 2 {
		t.Errorf("%v after %q, want that it is forbidden", err, s.asked)
	}
}

// A list that takes too long for its caller is given up, and the next one is tried as the
// first was.
func TestListAtOnceEndsWithItsContext(t *testing.T) {
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	s := &podServer{version: "v1.34.0", pods: namedPods(3)}
	s.atOnce = func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, protobufPrefix)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c := clusterAt(t, server.URL)
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if got, err := c.Pods(ctx); !errors.Is(err, context.DeadlineExceeded) || got != nil {
			t.Errorf("%d pods, %v; want none, and the deadline", len(got), err)
		}
		cancel()
	}
	if diff := cmp.Diff([]string{"/version", "/api/v1/pods", "/api/v1/pods"}, s.asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
