package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

var (
	podResource   = schema.GroupResource{Resource: "pods"}
	tooOld        = apierrors.NewResourceExpired("the provided continue parameter is too old")
	forbidden     = apierrors.NewForbidden(podResource, "", errors.New("no"))
	conflict      = apierrors.NewConflict(podResource, "web", errors.New("modified"))
	tooMany       = apierrors.NewTooManyRequests("later", 1)
	internal      = apierrors.NewInternalError(errors.New("etcd"))
	notFound      = apierrors.NewNotFound(podResource, "web")
	invalid       = apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web", nil)
	badRequest    = apierrors.NewBadRequest("what?")
	errConnection = errors.New("connect: connection refused")
)

// A book has three pages with two items each, and may fail at any request.
type book struct {
	failures []error // by request, nil for success
	asked    []string
	edition  int
}

func (b *book) page(_ context.Context, token string) (page[string], error) {
	n := len(b.asked)
	b.asked = append(b.asked, token)
	if n < len(b.failures) && b.failures[n] != nil {
		return page[string]{}, b.failures[n]
	}
	if token == "" {
		b.edition++
	}
	next := map[string]string{"": "2", "2": "3", "3": ""}[token]
	return page[string]{items: []string{fmt.Sprintf("%d:%sa", b.edition, token), fmt.Sprintf("%d:%sb", b.edition, token)}, next: next}, nil
}

// whole is everything in an edition.
func whole(edition int) []string {
	var items []string
	for _, token := range []string{"", "2", "3"} {
		items = append(items, fmt.Sprintf("%d:%sa", edition, token), fmt.Sprintf("%d:%sb", edition, token))
	}
	return items
}

// Promise 2, 3. The result is the whole of one listing, or an error.
func TestPagesAreWholeOrAnError(t *testing.T) {
	for _, tt := range []struct {
		name     string
		failures []error
		want     []string
		err      error
		asked    int
	}{
		{"all goes well", nil, whole(1), nil, 3},
		{"an expired page starts anew", []error{nil, nil, tooOld}, whole(2), nil, 6},
		{"it expires over and over", []error{nil, tooOld, nil, tooOld, nil, tooOld, nil, tooOld}, nil, tooOld, 8},
		{"a busy server is asked again", []error{nil, tooMany, tooMany}, whole(1), nil, 5},
		{"a server that stays broken", []error{nil, internal, internal, internal, internal}, nil, internal, 5},
		{"a forbidden page is not asked for again", []error{nil, forbidden}, nil, forbidden, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &book{failures: tt.failures}
				got, err := readPages(t.Context(), b.page)
				if !errors.Is(err, tt.err) {
					t.Errorf("error %v, want %v", err, tt.err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("items (-want +got):\n%s", diff)
				}
				if len(b.asked) != tt.asked {
					t.Errorf("%d requests, want %d", len(b.asked), tt.asked)
				}
			})
		})
	}
}

// Promise 2, 3. Pages from different times are not a list: an item that moved in between is on
// none of them, or on two.
func TestPagesOfDifferentVersionsAreAnError(t *testing.T) {
	versions := map[string]string{"": "7", "2": "7", "3": "8"}
	got, err := readPages(t.Context(), func(_ context.Context, token string) (page[string], error) {
		next := map[string]string{"": "2", "2": "3", "3": ""}[token]
		return page[string]{items: []string{"of page " + token}, next: next, version: versions[token]}, nil
	})
	if got != nil || !errors.Is(err, ipam.ErrRefused) || !strings.Contains(err.Error(), "different resourceVersions") {
		t.Errorf("%v, %v; want nothing, and that the versions differ", got, err)
	}
}

func TestEmptyPageIsNotTheEnd(t *testing.T) {
	got, err := readPages(t.Context(), func(_ context.Context, token string) (page[string], error) {
		if token == "" {
			return page[string]{next: "2"}, nil
		}
		return page[string]{items: []string{"late"}}, nil
	})
	if diff := cmp.Diff([]string{"late"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
