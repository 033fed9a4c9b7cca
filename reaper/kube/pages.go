package kube

import (
	"context"
	"errors"
	"time"

	"github.com/sethvargo/go-retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A PageFunc reads the page of a list that the token leads to, the first one
// for an empty token, and returns the token of the next, empty at the end.
type PageFunc[T any] func(ctx context.Context, token string) (items []T, next string, err error)

// Pages reads a paged list of the API server to its end. A page that answers
// 410 Expired restarts the list, since what was read before belongs to another
// time; what is returned is a whole list or an error, never a part. Pages that
// fail for a passing reason are read again.
func Pages[T any](ctx context.Context, page PageFunc[T]) ([]T, error) {
	const restarts = 3
	for attempt := 0; ; attempt++ {
		all, err := readPages(ctx, page)
		if err == nil || !apierrors.IsResourceExpired(err) || attempt == restarts {
			return all, err
		}
	}
}

// readPages reads from the first page to the last.
func readPages[T any](ctx context.Context, page PageFunc[T]) ([]T, error) {
	var all []T
	for token := ""; ; {
		var items []T
		var next string
		err := Patiently(ctx, func(ctx context.Context) (err error) {
			items, next, err = page(ctx, token)
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		if next == "" {
			return all, nil
		}
		token = next
	}
}

// Patiently makes a request of the API server again, a few times, where it fails
// for a passing reason. It must be one that may be made twice: a read, or a write
// under a condition or of one name.
func Patiently(ctx context.Context, request func(ctx context.Context) error) error {
	backoff := retry.WithMaxRetries(3, retry.NewExponential(100*time.Millisecond))
	return retry.Do(ctx, backoff, func(ctx context.Context) error {
		err := request(ctx)
		if errors.Is(Transient(err), reaper.ErrAgain) {
			return retry.RetryableError(err)
		}
		return err
	})
}
