package kube

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

// An answering is a transport that gives one answer.
type answering func() (*http.Response, error)

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a() }

func TestClockIsComparedWithTheAPIServers(t *testing.T) {
	noon := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	failure := errors.New("connection refused")
	for _, tt := range []struct {
		name  string
		date  string // of the answer
		err   error
		want  time.Duration
		known bool
	}{
		{"ahead", "Sun, 01 Mar 2026 11:00:00 GMT", nil, time.Hour, true},
		{"behind", "Mon, 02 Mar 2026 12:00:00 GMT", nil, -24 * time.Hour, true},
		{"no date that can be understood", "noon", nil, 0, false},
		{"no answer", "", failure, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := NewClock(func() time.Time { return noon })
			transport := c.Wrap(answering(func() (*http.Response, error) {
				if tt.err != nil {
					return nil, tt.err
				}
				return &http.Response{Header: http.Header{"Date": {tt.date}}}, nil
			}))
			if _, err := transport.RoundTrip(nil); !errors.Is(err, tt.err) { //nolint:bodyclose // it has none
				t.Errorf("the transport says %v, want %v", err, tt.err)
			}
			if got, known := c.Skew(); got != tt.want || known != tt.known {
				t.Errorf("Skew = %v, %v, want %v, %v", got, known, tt.want, tt.known)
			}
		})
	}
}
