package kube

import "context"

// An ahead requests a page before it is needed, one at a time. It is not safe for
// concurrent use.
type ahead[T any] struct {
	request PageFunc[T]
	under   *underway[T] // nil if no request was begun
}

// An underway is a request that was begun.
type underway[T any] struct {
	token  string
	limit  int
	cancel context.CancelFunc
	done   chan struct{} // closed when answer and err are set
	answer Answer[T]
	err    error
}

// begin requests the page of a token.
func (a *ahead[T]) begin(ctx context.Context, token string, limit int) {
	a.stop()
	ctx, cancel := context.WithCancel(ctx)
	u := &underway[T]{token: token, limit: limit, cancel: cancel, done: make(chan struct{})}
	a.under = u
	go func() {
		defer close(u.done)
		u.answer, u.err = a.request(ctx, token, limit)
	}()
}

// take returns the answer to the request that was begun, if it was for this token and with
// this limit. It requests the page otherwise. An answer is taken once, so what failed is
// requested again.
func (a *ahead[T]) take(ctx context.Context, token string, limit int) (Answer[T], error) {
	u := a.under
	if u == nil || u.token != token || u.limit != limit {
		a.stop()
		return a.request(ctx, token, limit)
	}
	a.under = nil
	defer u.cancel()
	<-u.done // its context ends with ctx
	return u.answer, u.err
}

// stop ends the request that was begun, and returns when it has ended.
func (a *ahead[T]) stop() {
	if a.under != nil {
		a.under.cancel()
		<-a.under.done
		a.under = nil
	}
}
