package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sethvargo/go-retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// MaxPage is the largest answer to the request for a page, in bytes. An ordinary page of
// 500 pods has about half of it. One object alone has at most 3 MiB: etcd accepts requests
// of 1.5 MiB, and JSON is no longer than twice of what is stored.
const MaxPage = 8 << 20

// A Page is a part of a list.
type Page[T any] struct {
	Items []T
	Next  string // the token of the next page; empty after the last page
	Bytes int    // the size of the answer
}

// A PageFunc reads the page of a list to which the token belongs, with at most limit
// objects. An empty token belongs to the first page. If the answer has more than MaxPage
// bytes, PageFunc does not read further, and returns only Bytes, which is larger.
type PageFunc[T any] func(ctx context.Context, token string, limit int) (Page[T], error)

// Pages reads all pages of a list, with at most that many objects on each page. It returns
// the whole list or an error, never a part.
//
// Pages with more than MaxPage bytes are read again with fewer objects. A token does not
// depend on the number of objects.
//
// If the API server answers 410 Expired, Pages reads the list again from the first page,
// because the pages before belong to another time. It retries transient errors.
func Pages[T any](ctx context.Context, most int, page PageFunc[T]) ([]T, error) {
	const restarts = 3
	for attempt := 0; ; attempt++ {
		all, err := readPages(ctx, most, page)
		if err == nil || !apierrors.IsResourceExpired(err) || attempt == restarts {
			return all, err
		}
	}
}

// errLargeObject says that one object alone is larger than a page may be. The next answer
// would be so, too.
var errLargeObject = refusedError{fmt.Errorf("an answer with one object has more than %d MiB", MaxPage>>20)}

// readPages reads the pages once, from the first to the last.
func readPages[T any](ctx context.Context, most int, page PageFunc[T]) ([]T, error) {
	var all []T
	limit, token := most, ""
	for {
		var p Page[T]
		err := Patiently(ctx, func(ctx context.Context) (err error) {
			p, err = page(ctx, token, limit)
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case p.Bytes > MaxPage && limit == 1:
			return nil, errLargeObject
		case p.Bytes > MaxPage:
			limit = max(1, limit/4)
			continue
		}
		all = append(all, p.Items...)
		if p.Next == "" {
			return all, nil
		}
		if n := len(p.Items); n > 0 { // the objects of the next page may be twice as large
			limit = min(most, max(1, n*(MaxPage/2)/max(1, p.Bytes)))
		}
		token = p.Next
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
