package kube

import (
	"context"
	"errors"
	"time"

	"github.com/sethvargo/go-retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A PageFunc reads the page of a list to which the token belongs. An empty token belongs
// to the first page. It returns the token of the next page, which is empty after the last
// page.
type PageFunc[T any] func(ctx context.Context, token string) (items []T, next string, err error)

// Pages reads all pages of a list. It returns the whole list or an error, never a part.
//
// If the API server answers 410 Expired, Pages reads the list again from the first page,
// because the pages before belong to another time. It retries transient errors.
func Pages[T any](ctx context.Context, page PageFunc[T]) ([]T, error) {
	const restarts = 3
	for attempt := 0; ; attempt++ {
		all, err := readPages(ctx, page)
		if err == nil || !apierrors.IsResourceExpired(err) || attempt == restarts {
			return all, err
		}
	}
}

// readPages reads the pages once, from the first to the last.
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

// Patiently makes a request to the API server, and up to three more after transient
// errors. The request must be safe to repeat: a read, a conditional write, or the
// creation of one name.
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
