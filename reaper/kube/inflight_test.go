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

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// counting is a transport that records the highest number of concurrent requests. Each answer
// begins after a second.
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

// Reads and writes share the limit, until their answers are read. Requests that must not wait
// do not.
func TestRequestsInFlightAreLimitedUntilTheyAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &counting{order: make(chan string, 100)}
		transport := NewInFlight(3, time.Hour).Wrap(server)
		for _, method := range []string{http.MethodGet, http.MethodPatch, http.MethodPost} {
			for range 3 {
				go func() { _ = send(t.Context(), t, transport, method, "/api/v1/pods", time.Second) }()
			}
		}
		time.Sleep(time.Millisecond) // the first three are sent
		began := time.Now()
		if err := send(ipam.Unqueued(t.Context()), t, transport, http.MethodPatch, "/apis/a/b", 0); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("the write took %v, want 1s: it does not wait for the others", took)
		}
		time.Sleep(time.Minute)
		if most := server.most.Load(); most != 4 {
			t.Errorf("%d requests at the same time, want three and the one that does not wait", most)
		}
		if n := len(server.order); n != 10 {
			t.Errorf("%d requests, want 10", n)
		}
	})
}

// Promise 4. A write that waits until its warrant has expired is not sent, so it is not lost.
func TestWriteThatWaitsForTooLongIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &counting{order: make(chan string, 100)}
		transport := NewInFlight(1, time.Hour).Wrap(server)
		go func() { _ = send(t.Context(), t, transport, http.MethodGet, "/api/v1/pods", time.Minute) }()
		time.Sleep(time.Second)
		began := time.Now()
		err := send(ipam.SendBy(t.Context(), began.Add(20*time.Second), nil), t, transport, http.MethodPut, "/apis/a/b", 0)
		if !errors.Is(err, errUnsent) || time.Since(began) != 20*time.Second {
			t.Errorf("%v after %v, want that it is given up after 20s", err, time.Since(began))
		}
		if err = Unsure(Transient(err)); !errors.Is(err, ipam.ErrAgain) || errors.Is(err, ipam.ErrLost) {
			t.Errorf("%v, want that nothing was decided", err)
		}
		if n := len(server.order); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		time.Sleep(time.Minute) // the first one ends
	})
}

// Promise 4. Nor is a write whose run may have lost its lock while it waited.
func TestWriteThatWaitsUntilItsRunIsHaltedIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &counting{order: make(chan string, 100)}
		transport := NewInFlight(1, time.Hour).Wrap(server)
		go func() { _ = send(t.Context(), t, transport, http.MethodGet, "/api/v1/pods", 10*time.Second) }()
		time.Sleep(time.Second)
		began, lapsed := time.Now(), &ipam.HaltedError{Err: errors.New("the lock was lost"), End: true}
		halted := func() error {
			if time.Since(began) > 5*time.Second {
				return lapsed
			}
			return nil
		}
		err := send(ipam.SendBy(t.Context(), began.Add(20*time.Second), halted), t, transport, http.MethodPut, "/apis/a/b", 0)
		if err = Unsure(Transient(err)); !errors.Is(err, lapsed) || errors.Is(err, ipam.ErrLost) {
			t.Errorf("%v, want that it was not sent since %v", err, lapsed)
		}
		if n := len(server.order); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		if err := send(ipam.SendBy(t.Context(), time.Now().Add(20*time.Second), nil), t, transport, http.MethodPut, "/apis/a/b", 0); err != nil {
			t.Errorf("the next one: %v, want that there is room for it", err)
		}
	})
}

// When the API server asks one request to wait, the others wait too, except those that must
// not.
func TestRequestsWaitForAsLongAsTheServerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := http.StatusTooManyRequests
		transport := NewInFlight(3, time.Hour).Wrap(answering(func() (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {"5"}}, Body: http.NoBody}, nil
		}))
		if err := send(t.Context(), t, transport, http.MethodGet, "/api/v1/pods", 0); err != nil {
			t.Fatal(err)
		}
		status = http.StatusOK
		began := time.Now()
		for _, tt := range []struct {
			ctx  context.Context
			want time.Duration
		}{{ipam.Unqueued(t.Context()), 0}, {t.Context(), 5 * time.Second}, {t.Context(), 5 * time.Second}} {
			if err := send(tt.ctx, t, transport, http.MethodGet, "/api/v1/pods", 0); err != nil || time.Since(began) != tt.want {
				t.Errorf("%v after %v, want it sent after %v", err, time.Since(began), tt.want)
			}
		}
	})
}

// A look that would be too old after the wait fails instead, and says when to try again. No answer
// makes a client wait for more than 10 s, whatever it says.
func TestPoliteRequestFailsWhileTheServerAsksToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, header := 0, http.Header{"Retry-After": {"3600"}}
		transport := NewInFlight(3, time.Hour).Wrap(answering(func() (*http.Response, error) {
			sent++
			return &http.Response{StatusCode: http.StatusTooManyRequests, Header: header, Body: http.NoBody}, nil
		}))
		if err := send(ipam.Polite(t.Context()), t, transport, http.MethodGet, "/api/v1/pods", 0); err != nil {
			t.Fatal(err)
		}
		if got := header.Get("Retry-After"); got != "10" {
			t.Errorf("client-go would wait for %s s, want 10", got)
		}
		time.Sleep(4 * time.Second)
		err := send(ipam.Polite(t.Context()), t, transport, http.MethodGet, "/api/v1/pods", 0)
		if got := ipam.RetryAfter(Answered(err)); got != 6*time.Second || sent != 1 {
			t.Errorf("%v: try again after %v, want 6s, and no request sent", err, got)
		}
		time.Sleep(6 * time.Second)
		if err := send(ipam.Polite(t.Context()), t, transport, http.MethodGet, "/api/v1/pods", 0); err != nil || sent != 2 {
			t.Errorf("%v, want it sent after 10s", err)
		}
	})
}

// Promise 7. The time of a request begins when it is sent. A write that waited for longer than that
// is sent, and is lost only if its answer does not come in time.
func TestTimeOfARequestBeginsWhenItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		transport := NewInFlight(1, time.Minute).Wrap(roundTripper(func(r *http.Request) (*http.Response, error) {
			if hangs.Load() {
				<-r.Context().Done()
				return nil, context.Cause(r.Context())
			}
			return &http.Response{StatusCode: http.StatusOK, Body: unending{r.Context()}}, nil
		}))
		go func() {
			err := send(t.Context(), t, transport, http.MethodGet, "/api/v1/pods", 0)
			if !errors.Is(err, errTimeout) {
				t.Errorf("an answer without an end: %v, want errTimeout", err)
			}
		}()
		time.Sleep(time.Second)
		hangs.Store(true)
		began := time.Now()
		err := Unsure(Transient(send(t.Context(), t, transport, http.MethodPatch, "/apis/a/b", 0)))
		if took := time.Since(began); took != 2*time.Minute-time.Second || !errors.Is(err, errTimeout) || !errors.Is(err, ipam.ErrLost) {
			t.Errorf("%v after %v, want that it is lost a minute after it was sent", err, took)
		}
	})
}

// unending is a body that never ends.
type unending struct{ ctx context.Context }

func (b unending) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func (unending) Close() error { return nil }

// A request that is given up takes no place, whether it waits or not.
func TestRequestThatIsGivenUpLeavesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &counting{order: make(chan string, 100)}
		transport := NewInFlight(1, time.Hour).Wrap(server)
		go func() { _ = send(t.Context(), t, transport, http.MethodGet, "/api/v1/pods", time.Minute) }()
		time.Sleep(2 * time.Second)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := send(ctx, t, transport, http.MethodGet, "/api/v1/nodes", 0); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want that the wait is given up", err)
			}
			cancel()
		}
		broken := NewInFlight(1, time.Hour).Wrap(answering(func() (*http.Response, error) { return nil, io.ErrUnexpectedEOF }))
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
