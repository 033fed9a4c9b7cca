package kube_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A page is requested while the one before is decoded, and one at a time.
func TestNextPageIsRequestedWhileOneIsDecoded(t *testing.T) {
	requested := map[string]chan struct{}{"": make(chan struct{}), "2": make(chan struct{}), "3": make(chan struct{})}
	next := map[string]string{"": "2", "2": "3", "3": ""}
	got, err := kube.Pages(t.Context(), 2, func(_ context.Context, token string, _ int) (kube.Answer[string], error) {
		close(requested[token]) // a second time panics
		return kube.Answer[string]{Likely: next[token], Decode: func() (kube.Page[string], error) {
			if next[token] != "" {
				<-requested[next[token]]
			}
			return kube.Page[string]{Items: []string{token}, Next: next[token]}, nil
		}}, nil
	})
	equal(t, "error", err, nil)
	equal(t, "items", got, []string{"", "2", "3"})
}

// Promise 2. A page that was requested by a wrong token is dropped, and so is one whose
// predecessor could not be decoded.
func TestPageOfAWrongTokenIsDropped(t *testing.T) {
	for _, likely := range []string{"", "2", "3", "nowhere"} {
		broken := true
		next := map[string]string{"": "2", "2": "3", "3": ""}
		got, err := kube.Pages(t.Context(), 2, func(_ context.Context, token string, _ int) (kube.Answer[string], error) {
			return kube.Answer[string]{Likely: likely, Decode: func() (kube.Page[string], error) {
				if token == "2" && broken {
					broken = false
					return kube.Page[string]{}, errors.New("torn")
				}
				return kube.Page[string]{Items: []string{token}, Next: next[token]}, nil
			}}, nil
		})
		equal(t, "error", err, nil)
		equal(t, "items where the next page is likely "+likely, got, []string{"", "2", "3"})
	}
}
