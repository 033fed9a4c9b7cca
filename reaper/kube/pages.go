package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sethvargo/go-retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// MaxObject is how many bytes one object in an answer may have. In practice it has at most 3
// MiB: etcd accepts requests of 1.5 MiB, and JSON is at most twice as long as what is stored.
const MaxObject = 8 << 20

// A page is a list, or a part of one.
type page[T any] struct {
	items   []T
	next    string // the token of the next page; empty after the last page
	version string // of the list, the same on each page
}

// A pageFunc requests the page of a list that the token belongs to. An empty token means the
// first page.
type pageFunc[T any] func(ctx context.Context, token string) (page[T], error)

// readPages reads all pages of a list. It returns the whole list or an error, never a part.
//
// If the API server answers 410 Expired, readPages reads the list again from the first page,
// because the earlier pages belong to another time. It retries transient errors. If two pages
// have different versions, they do not belong to one list, and readPages fails.
func readPages[T any](ctx context.Context, request pageFunc[T]) ([]T, error) {
	const restarts = 3
	for attempt := 0; ; attempt++ {
		all, err := readPagesOnce(ctx, request)
		if err == nil || !apierrors.IsResourceExpired(err) || attempt == restarts {
			return all, err
		}
	}
}

// ErrLargeObject says that an object is too large, and would be again in the next answer.
var ErrLargeObject error = markedError{fmt.Errorf("an object has more than %d MiB", MaxObject>>20), ipam.ErrRefused}

// errMixed says that a list is from different times. A conforming API server reads all pages at
// the resourceVersion of the first.
var errMixed = markedError{errors.New("the pages of the list have different resourceVersions"), ipam.ErrRefused}

func readPagesOnce[T any](ctx context.Context, request pageFunc[T]) ([]T, error) {
	var all []T
	var version string
	for token := ""; ; {
		var one page[T]
		err := Patiently(ctx, func(ctx context.Context) (err error) {
			one, err = request(ctx, token)
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case token == "":
			version = one.version
		case one.version != version:
			return nil, errMixed
		}
		all = append(all, one.items...)
		if token = one.next; token == "" {
			return all, nil
		}
	}
}

// Patiently makes a request to the API server, and up to three more after transient
// errors. The request must be safe to repeat: a read, a conditional write, or the
// creation of one name.
func Patiently(ctx context.Context, request func(ctx context.Context) error) error {
	backoff := retry.WithMaxRetries(3, retry.NewExponential(100*time.Millisecond))
	return retry.Do(ctx, backoff, func(ctx context.Context) error {
		err := request(ctx)
		if errors.Is(Transient(err), ipam.ErrAgain) {
			return retry.RetryableError(err)
		}
		return err
	})
}
