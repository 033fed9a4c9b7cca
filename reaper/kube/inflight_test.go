package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counting is a transport that notes the most requests at the same time, each of which
// takes a second until its answer begins.
type counting struct {
	now, most atomic.Int32
	order     chan string
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.most.Store(max(c.most.Load(), c.now.Add(1)))
	c.order <- r.Method
	time.Sleep(time.Second)
	end := sync.OnceFunc(func() { c.now.Add(-1) })
	return &http.Response{Body: &endingBody{strings.NewReader("x"), end}}, nil
}

// endingBody is a body that says when it is read or closed.
type endingBody struct {
	from io.Reader
	end  func()
}

func (b *endingBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *endingBody) Close() error {
	b.end()
	return nil
}

// send makes a request and reads the answer after a while.
func send(ctx context.Context, t *testing.T, transport http.RoundTripper, method, path string, reading time.Duration) error {
	request, err := http.NewRequestWithContext(ctx, method, "https://a"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	time.Sleep(reading)
	_, err = io.ReadAll(response.Body)
	return err
}

func TestRequestsInFlightAreLimitedUntilTheyAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &counting{order: make(chan string, 100)}
		transport := NewInFlight(3).Wrap(server)
		for range 9 {
			go func() { _ = send(t.Context(), t, transport, http.MethodGet, "/api/v1/pods", time.Second) }()
		}
		time.Sleep(time.Millisecond) // the first three are sent
		began := time.Now()
		if err := send(t.Context(), t, transport, http.MethodPatch, "/apis/a/b", 0); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("the write took %v, want 1s: it does not wait for the reads", took)
		}
		time.Sleep(time.Minute)
		if most := server.most.Load(); most != 4 {
			t.Errorf("%d requests at the same time, want three reads and the write", most)
		}
		if n := len(server.order); n != 10 {
			t.Errorf("%d requests, want 10", n)
		}
	})
}

// A write that no warrant permits waits as a read does.
func TestUnhurriedWritesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &counting{order: make(chan string, 100)}
		transport := NewInFlight(3).Wrap(server)
		for range 9 {
			go func() {
				_ = send(Unhurried(t.Context()), t, transport, http.MethodPost, "/api/v1/configmaps", time.Second)
			}()
		}
		time.Sleep(time.Minute)
		if most := server.most.Load(); most != 3 {
			t.Errorf("%d requests at the same time, want 3", most)
		}
		if n := len(server.order); n != 9 {
			t.Errorf("%d requests, want 9", n)
		}
	})
}

// A request that is given up takes no place, whether it waits or not.
func TestRequestThatIsGivenUpLeavesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &counting{order: make(chan string, 100)}
		transport := NewInFlight(1).Wrap(server)
		go func() { _ = send(t.Context(), t, transport, http.MethodGet, "/api/v1/pods", time.Minute) }()
		time.Sleep(2 * time.Second)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := send(ctx, t, transport, http.MethodGet, "/api/v1/nodes", 0); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want that the wait is given up", err)
			}
			cancel()
		}
		broken := NewInFlight(1).Wrap(answering(func() (*http.Response, error) { return nil, io.ErrUnexpectedEOF }))
		for range 3 {
			if err := send(t.Context(), t, broken, http.MethodGet, "/api/v1/nodes", 0); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Error(err)
			}
		}
		if err := send(t.Context(), t, transport, http.MethodGet, "/api/v1/nodes", 0); err != nil {
			t.Error(err)
		}
	})
}
