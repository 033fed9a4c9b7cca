package kube_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The list that a blockServer has, as an API server writes custom resources.
const wholeBlocks = `{"apiVersion":"g/v1","items":[{"unknown": 1.50,"N":18446744073709551615},"ü\u00fc",{"metadata":{"name":"c"}}],"kind":"BlockList","metadata":{"resourceVersion":"9"}}`

var blockItems = []string{`{"unknown": 1.50,"N":18446744073709551615}`, `"ü\u00fc"`, `{"metadata":{"name":"c"}}`}

// A blockServer has three blocks, a version, and an answer to a request for the whole list. It
// answers other requests in pages.
type blockServer struct {
	version string
	whole   http.HandlerFunc // nil: all of them
	asked   []string
}

func (s *blockServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked = append(s.asked, r.URL.RequestURI())
	query := r.URL.Query()
	switch {
	case r.URL.Path == "/version":
		sendJSON(w, fmt.Sprintf(`{"gitVersion": %q}`, s.version))
	case !query.Has("limit") && s.whole != nil:
		s.whole(w, r)
	case !query.Has("limit"):
		sendJSON(w, wholeBlocks)
	case query.Get("continue") == "two/+ &":
		sendJSON(w, `{"items":[`+strings.Join(blockItems[2:], ",")+`],"kind":"BlockList","metadata":{"resourceVersion":"9"}}`)
	case query.Has("continue"):
		http.Error(w, "another token", http.StatusBadRequest)
	default:
		sendJSON(w, `{"items":[`+strings.Join(blockItems[:2], ",")+`],"kind":"BlockList","metadata":{"continue":"two/+ &","resourceVersion":"9"}}`)
	}
}

const (
	firstPage   = "/apis/g/v1/blocks?limit=500"
	secondPage  = "/apis/g/v1/blocks?continue=two%2F%2B+%26&limit=500"
	wholeAnswer = "/apis/g/v1/blocks"
)

// Promise 2, 3, 6. A list is read whole if the API server does that well. Otherwise, every page is
// requested on its own. Objects are what the API server sends: unknown fields, large numbers and
// all.
func TestVersionDecidesHowListsAreRead(t *testing.T) {
	whole, pages := []string{"/version", wholeAnswer}, []string{"/version", firstPage, secondPage}
	for version, want := range map[string][]string{
		"v1.34.0": whole, "v1.37.1+k3s1": whole, "v1.33.9": pages, "": pages, "latest": pages,
	} {
		s := &blockServer{version: version}
		got, err := blocksAt(t, clientAt(t, s))
		equal(t, "error with "+version, err, nil)
		equal(t, "blocks with "+version, got, blockItems)
		equal(t, "requests with "+version, s.asked, want)
	}
}

// Promise 2, 3, 11. Pages are read in place of an answer that is not the whole list.
func TestAnswerThatIsNotTheWholeListIsReadInPages(t *testing.T) {
	say := func(answer string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { sendJSON(w, answer) }
	}
	for name, answer := range map[string]http.HandlerFunc{
		"cut between two objects": say(wholeBlocks[:strings.Index(wholeBlocks, `,"ü`)]),
		"a page":                  say(strings.Replace(wholeBlocks, `"resourceVersion"`, `"continue":"2","resourceVersion"`, 1)),
		"too long for a proxy":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) },
		"broken":                  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"aborted behind its end": func(w http.ResponseWriter, _ *http.Request) {
			sendJSON(w, wholeBlocks)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &blockServer{version: "v1.34.0", whole: answer}
			got, err := blocksAt(t, clientAt(t, s))
			equal(t, "error", err, nil)
			equal(t, "blocks", got, blockItems)
			equal(t, "the last requests", s.asked[len(s.asked)-2:], []string{firstPage, secondPage})
		})
	}
}

// With a client that remembers, the version is asked for once, and lists are read in pages after
// one that broke off.
func TestClientRemembersHowListsAreRead(t *testing.T) {
	for whole, want := range map[string][]string{
		wholeBlocks:      {"/version", wholeAnswer, wholeAnswer},
		wholeBlocks[:40]: {"/version", wholeAnswer, firstPage, secondPage, firstPage, secondPage},
	} {
		s := &blockServer{version: "v1.34.0", whole: func(w http.ResponseWriter, _ *http.Request) { sendJSON(w, whole) }}
		client := kube.Remember(clientAt(t, s))
		for range 2 {
			got, err := blocksAt(t, client)
			equal(t, "error", err, nil)
			equal(t, "blocks", got, blockItems)
		}
		equal(t, "requests", s.asked, want)
	}
}

// A request that is refused would also be refused for pages.
func TestRefusedListIsNotReadInPages(t *testing.T) {
	refusal := statusOf(t, apierrors.NewForbidden(schema.GroupResource{Resource: "blocks"}, "", nil))
	s := &blockServer{version: "v1.34.0", whole: func(w http.ResponseWriter, _ *http.Request) { sendJSON(w, refusal) }}
	if got, err := blocksAt(t, clientAt(t, s)); !apierrors.IsForbidden(err) || got != nil {
		t.Errorf("%v, %v; want nothing, and that it is forbidden", got, err)
	}
	equal(t, "requests", s.asked, []string{"/version", wholeAnswer})
}

// A list that takes too long for its caller is given up, not read in pages.
func TestWholeListEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &blockServer{version: "v1.34.0", whole: func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"items":["a"`)
		_ = http.NewResponseController(w).Flush()
		cancel()
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
		}
	}}
	got, err := kube.ListRaw(ctx, clientAt(t, s), func(get *rest.Request) *rest.Request { return get.AbsPath("/apis/g/v1/blocks") })
	if got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%d blocks, %v; want none, and that the context ended", len(got), err)
	}
	if slices.Contains(s.asked, secondPage) {
		t.Errorf("requests %q", s.asked)
	}
}

// A server that cannot be reached, never answers or does not know the user is given up. An
// interruption is not blamed on the server. Other answers are up to each request.
func TestServerWithoutAFirstAnswerIsGivenUp(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, tt := range []struct {
		name   string
		ctx    context.Context
		answer http.HandlerFunc
		limit  time.Duration
		want   string // in the error
	}{
		{"it never answers", t.Context(), hang, 50 * time.Millisecond, "the API server a did not answer within 50ms"},
		{"it answers", t.Context(), func(w http.ResponseWriter, _ *http.Request) { sendJSON(w, `{}`) }, time.Minute, ""},
		{"it forbids", t.Context(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, time.Minute, ""},
		{"it does not know the user", t.Context(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, time.Minute, "the API server a does not accept the credentials: "},
		{"it breaks off", t.Context(), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, time.Minute, "the API server a cannot be reached: EOF"},
		{"the program is interrupted", interrupted, hang, time.Minute, "context canceled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := kube.FirstAnswer(tt.ctx, clientAt(t, tt.answer), "a", tt.limit)
			if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
