package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// silent is a transport that never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// newFirstAnswer returns one with the program's durations, and the sentences that it told.
func newFirstAnswer() (*FirstAnswer, *[]string) {
	var told []string
	return &FirstAnswer{Server: "https://a", Interval: 10 * time.Second, Limit: 30 * time.Second,
		Tell: func(request string, waited time.Duration) { told = append(told, request+" "+waited.String()) }}, &told
}

func get(ctx context.Context, t *testing.T, transport http.RoundTripper, path string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://a"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return transport.RoundTrip(request)
}

func TestServerThatNeverAnswersIsToldAndGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, told := newFirstAnswer()
		transport := first.Wrap(silent{})
		began := time.Now()
		const want = "the API server https://a did not answer within 30s"
		for _, path := range []string{"/api/v1/pods", "/api/v1/nodes"} { // the second is sent after the limit
			if _, err := get(t.Context(), t, transport, path); err == nil || err.Error() != want { //nolint:bodyclose // it has none
				t.Errorf("%s: %v, want %s", path, err, want)
			}
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("it took %v", took)
		}
		if want := []string{"list pods 10s", "list pods 20s"}; !slices.Equal(*told, want) {
			t.Errorf("told %q, want %q", *told, want)
		}
	})
}

// A later list may take longer than the first answer.
func TestServerThatAnsweredIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, told := newFirstAnswer()
		slow := first.Wrap(answering(func() (*http.Response, error) {
			time.Sleep(25 * time.Second)
			return &http.Response{Body: io.NopCloser(strings.NewReader("x"))}, nil
		}))
		for range 3 {
			response, err := get(t.Context(), t, slow, "/api/v1/pods")
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(response.Body); string(body) != "x" || err != nil {
				t.Errorf("the body is %q, %v", body, err)
			}
			_ = response.Body.Close()
		}
		if want := []string{"list pods 10s", "list pods 20s"}; !slices.Equal(*told, want) {
			t.Errorf("told %q, want %q", *told, want)
		}
	})
}

// A run that the user interrupts ends at once, with no word about the server. A refused
// connection is not told as a silent server.
func TestOtherEndsOfARequestStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, told := newFirstAnswer()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := get(ctx, t, first.Wrap(silent{}), "/api/v1/pods"); !errors.Is(err, context.Canceled) { //nolint:bodyclose // it has none
			t.Errorf("interrupted: %v", err)
		}
		refused := errors.New("connection refused")
		transport := first.Wrap(answering(func() (*http.Response, error) { return nil, refused }))
		if _, err := get(t.Context(), t, transport, "/api/v1/pods"); !errors.Is(err, refused) { //nolint:bodyclose // it has none
			t.Errorf("refused: %v", err)
		}
		time.Sleep(time.Minute)
		if len(*told) > 0 {
			t.Errorf("told %q", *told)
		}
	})
}

func TestRequestsInWords(t *testing.T) {
	for _, tt := range []struct{ method, path, want string }{
		{http.MethodGet, "/api/v1/pods", "list pods"},
		{http.MethodGet, "/api/v1/namespaces/a/pods/b", "get pods b"},
		{http.MethodGet, "/api/v1/namespaces/a", "get namespaces a"},
		{http.MethodGet, "/apis/whereabouts.cni.cncf.io/v1alpha1/ippools", "list ippools"},
		{http.MethodPost, "/apis/coordination.k8s.io/v1/namespaces/a/leases", "create leases"},
		{http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", "update leases b"},
		{http.MethodGet, "/apis", "get /apis"},
		{http.MethodGet, "/", "get /"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), tt.method, "https://a"+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := requestWords(request); got != tt.want {
			t.Errorf("%s %s is %q, want %q", tt.method, tt.path, got, tt.want)
		}
	}
}
