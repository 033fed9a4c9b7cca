package ipam

import (
	"context"
	"time"
)

// turnKey marks a context of Unqueued, Polite or SendBy.
type turnKey struct{}

// A Turn says how long a request may queue for a free slot. The zero value waits as long as its
// context.
type Turn struct {
	Unqueued bool      // it does not wait at all
	Polite   bool      // with Unqueued: it fails while the API server asks its clients to wait
	SendBy   time.Time // it is given up unless it is sent by then; zero: never
}

// Unqueued returns a context whose requests do not wait for their turn. It is for the lock, and
// for looks and writes that would be too old after Freshness.
func Unqueued(ctx context.Context) context.Context {
	return context.WithValue(ctx, turnKey{}, Turn{Unqueued: true})
}

// Polite returns a context of Unqueued whose requests fail while the API server asks its clients
// to wait. The error is a *RetryAfterError. It is for looks that would be too old after the wait.
func Polite(ctx context.Context) context.Context {
	return context.WithValue(ctx, turnKey{}, Turn{Unqueued: true, Polite: true})
}

// SendBy returns a context whose requests are sent before a time, or not at all, because
// afterwards no warrant permits them. With the zero time, they wait as long as the context.
func SendBy(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, turnKey{}, Turn{SendBy: at})
}

// TurnOf returns the turn of a context.
func TurnOf(ctx context.Context) Turn {
	turn, _ := ctx.Value(turnKey{}).(Turn)
	return turn
}
