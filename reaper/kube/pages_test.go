package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

var (
	podResource   = schema.GroupResource{Resource: "pods"}
	expired       = apierrors.NewResourceExpired("the provided continue parameter is too old")
	forbidden     = apierrors.NewForbidden(podResource, "", errors.New("no"))
	conflict      = apierrors.NewConflict(podResource, "web", errors.New("modified"))
	tooMany       = apierrors.NewTooManyRequests("later", 1)
	internal      = apierrors.NewInternalError(errors.New("etcd"))
	notFound      = apierrors.NewNotFound(podResource, "web")
	invalid       = apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web", nil)
	badRequest    = apierrors.NewBadRequest("what?")
	errConnection = errors.New("connect: connection refused")
)

// A book has three pages, of two items each, and may fail at any turn.
type book struct {
	failures []error // by request, nil for success
	asked    []string
	edition  int
}

func (b *book) page(_ context.Context, token string, _ int) (kube.Answer[string], error) {
	n := len(b.asked)
	b.asked = append(b.asked, token)
	if n < len(b.failures) && b.failures[n] != nil {
		return kube.Answer[string]{Likely: "nowhere"}, b.failures[n]
	}
	if token == "" {
		b.edition++
	}
	next := map[string]string{"": "2", "2": "3", "3": ""}[token]
	return answerOf(kube.Page[string]{Items: []string{fmt.Sprintf("%d:%sa", b.edition, token), fmt.Sprintf("%d:%sb", b.edition, token)}, Next: next}), nil
}

// answerOf is an answer of no size that shows at once which page is next.
func answerOf[T any](p kube.Page[T]) kube.Answer[T] {
	return kube.Answer[T]{Likely: p.Next, Decode: func() (kube.Page[T], error) { return p, nil }}
}

// whole is all that an edition has.
func whole(edition int) []string {
	var items []string
	for _, token := range []string{"", "2", "3"} {
		items = append(items, fmt.Sprintf("%d:%sa", edition, token), fmt.Sprintf("%d:%sb", edition, token))
	}
	return items
}

// Promise 2, 3. What comes back is the whole of one listing, or an error.
func TestPagesAreWholeOrAnError(t *testing.T) {
	for _, tt := range []struct {
		name     string
		failures []error
		want     []string
		err      error
		asked    int
	}{
		{"all goes well", nil, whole(1), nil, 3},
		{"an expired page starts anew", []error{nil, nil, expired}, whole(2), nil, 6},
		{"an expired first page starts anew", []error{expired}, whole(1), nil, 4},
		{"every page expires once", []error{nil, expired, nil, nil, expired}, whole(3), nil, 8},
		{"it expires over and over", []error{nil, expired, nil, expired, nil, expired, nil, expired}, nil, expired, 8},
		{"a busy server is asked again", []error{nil, tooMany, tooMany}, whole(1), nil, 5},
		{"a broken server is asked again", []error{internal, nil, internal}, whole(1), nil, 5},
		{"a broken connection is made again", []error{nil, errConnection}, whole(1), nil, 4},
		{"a server that stays broken", []error{nil, internal, internal, internal, internal}, nil, internal, 5},
		{"a forbidden page is not asked for again", []error{nil, forbidden}, nil, forbidden, 2},
		{"what is not there is not asked for again", []error{notFound}, nil, notFound, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &book{failures: tt.failures}
				got, err := kube.Pages(t.Context(), 2, b.page)
				if !errors.Is(err, tt.err) {
					t.Errorf("error %v, want %v", err, tt.err)
				}
				equal(t, "items", got, tt.want)
				equal(t, "requests", len(b.asked), tt.asked)
			})
		})
	}
}

func TestPagesOfAnEmptyList(t *testing.T) {
	got, err := kube.Pages(t.Context(), 2, func(context.Context, string, int) (kube.Answer[string], error) {
		return answerOf(kube.Page[string]{}), nil
	})
	if err != nil || len(got) != 0 {
		t.Errorf("%v, %v; want nothing", got, err)
	}
}

// Promise 2, 3. Pages of several times are no list: what moved between them is on none, or on two.
func TestPagesOfDifferentVersionsAreAnError(t *testing.T) {
	versions := map[string]string{"": "7", "2": "7", "3": "8"}
	got, err := kube.Pages(t.Context(), 2, func(_ context.Context, token string, _ int) (kube.Answer[string], error) {
		next := map[string]string{"": "2", "2": "3", "3": ""}[token]
		return answerOf(kube.Page[string]{Items: []string{"of page " + token}, Next: next, Version: versions[token]}), nil
	})
	if got != nil || !errors.Is(err, reaper.ErrRefused) || !strings.Contains(err.Error(), "different resourceVersions") {
		t.Errorf("%v, %v; want nothing, and that the versions differ", got, err)
	}
}

func TestEmptyPageIsNotTheEnd(t *testing.T) {
	got, err := kube.Pages(t.Context(), 2, func(_ context.Context, token string, _ int) (kube.Answer[string], error) {
		if token == "" {
			return answerOf(kube.Page[string]{Next: "2"}), nil
		}
		return answerOf(kube.Page[string]{Items: []string{"late"}}), nil
	})
	equal(t, "error", err, nil)
	equal(t, "items", got, []string{"late"})
}

func TestPagesEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		b := &book{failures: []error{nil, internal, internal, internal}}
		got, err := kube.Pages(ctx, 2, b.page)
		if !errors.Is(err, context.DeadlineExceeded) || got != nil {
			t.Errorf("%v, %v; want the deadline and nothing else", got, err)
		}
		equal(t, "requests", len(b.asked), 2)
	})
}

// Promise 7. Only an answer below 500, or no connection, proves that a write was not carried out.
func TestUnsure(t *testing.T) {
	refused := fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{internal, true}, {apierrors.NewTimeoutError("slow", 1), true}, {errConnection, true}, {context.Canceled, true},
		{conflict, false}, {tooMany, false}, {forbidden, false}, {invalid, false}, {refused, false},
	} {
		got := kube.Unsure(kube.Transient(tt.err))
		if errors.Is(got, reaper.ErrLost) != tt.want || !errors.Is(got, tt.err) || got.Error() != tt.err.Error() {
			t.Errorf("Unsure(%v) = %v, want ErrLost in it: %v", tt.err, got, tt.want)
		}
	}
	if err := kube.Unsure(nil); err != nil {
		t.Errorf("Unsure(nil) = %v", err)
	}
}

func TestTransient(t *testing.T) {
	timeout := apierrors.NewTimeoutError("slow", 1)
	unavailable := apierrors.NewServiceUnavailable("starting")
	teapot := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusTeapot}}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{conflict, true}, {tooMany, true}, {internal, true}, {timeout, true}, {unavailable, true},
		{errConnection, true}, {context.DeadlineExceeded, true}, {fmt.Errorf("get: %w", conflict), true},
		{reaper.ErrAgain, true}, {fmt.Errorf("%w: later", reaper.ErrAgain), true},
		{forbidden, false}, {notFound, false}, {invalid, false}, {badRequest, false}, {expired, false},
		{teapot, false}, {&apierrors.StatusError{}, false},
	} {
		got := kube.Transient(tt.err)
		if errors.Is(got, reaper.ErrAgain) != tt.want || !errors.Is(got, tt.err) {
			t.Errorf("Transient(%v) = %v, want ErrAgain in it: %v", tt.err, got, tt.want)
		}
	}
	if err := kube.Transient(nil); err != nil {
		t.Errorf("Transient(nil) = %v", err)
	}
}
