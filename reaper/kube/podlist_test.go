package kube

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// A podServer has pods, a version, and an answer of its own to the requests for all of them
// at once. It answers other requests in pages.
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

// Promise 1, 2. An answer that is not all pods is never taken for all of them. Pages are read
// in its place, and from then on.
func TestAnswerThatIsNotAllPodsIsReadInPages(t *testing.T) {
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
