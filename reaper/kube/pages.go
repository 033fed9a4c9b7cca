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
	Items   []T
	Next    string // the token of the next page; empty after the last page
	Version string // of the list, the same on each page
}

// An Answer has a page that is not decoded yet.
type Answer[T any] struct {
	Bytes int // the size of the answer

	// Likely is the token of the next page as far as it shows before the page is decoded.
	// It may be empty or wrong: Page.Next counts.
	Likely string

	// Decode returns the page. It is called once, and not for an answer with more than
	// MaxPage bytes.
	Decode func() (Page[T], error)
}

// A PageFunc requests the page of a list to which the token belongs, with at most limit
// objects. An empty token belongs to the first page. If the answer has more than MaxPage
// bytes, PageFunc does not read further, and returns only Bytes, which is larger. It may be
// called while an answer before is decoded.
type PageFunc[T any] func(ctx context.Context, token string, limit int) (Answer[T], error)

// maxGrowth is how many times as many objects a later page may have as the first one. An API
// server needs some 10 ms for each answer, beside what it needs for each object.
const maxGrowth = 10

// Pages reads all pages of a list, with at most that many objects on the first page. It
// returns the whole list or an error, never a part. It requests a page while it decodes the
// one before.
//
// If the objects are small, later pages have more of them. Pages with more than MaxPage bytes
// are read again with fewer. A token does not depend on the number of objects.
//
// If the API server answers 410 Expired, Pages reads the list again from the first page,
// because the pages before belong to another time. It retries transient errors. If two pages
// have different versions, they are not of one list, and Pages fails.
func Pages[T any](ctx context.Context, first int, request PageFunc[T]) ([]T, error) {
	const restarts = 3
	for attempt := 0; ; attempt++ {
		all, err := readPages(ctx, first, request)
		if err == nil || !apierrors.IsResourceExpired(err) || attempt == restarts {
			return all, err
		}
	}
}

// errLargeObject says that one object alone is larger than a page may be. The next answer
// would be so, too.
var errLargeObject = refusedError{fmt.Errorf("an answer with one object has more than %d MiB", MaxPage>>20)}

// errMixed says that a list is of several times. A conforming API server reads the pages behind
// the first one at its resourceVersion.
var errMixed = refusedError{errors.New("the pages of the list have different resourceVersions")}

// readPages reads the pages once, from the first to the last.
func readPages[T any](ctx context.Context, first int, request PageFunc[T]) ([]T, error) {
	var all []T
	var version string // of the first page
	next := ahead[T]{request: request}
	defer next.stop()
	limit, token := first, ""
	for {
		var page Page[T]
		var answer Answer[T]
		nextLimit := limit
		err := Patiently(ctx, func(ctx context.Context) (err error) {
			answer, err = next.take(ctx, token, limit)
			if err != nil || answer.Bytes > MaxPage {
				return err
			}
			// The objects of the next page may be twice as large.
			nextLimit = min(maxGrowth*first, max(1, limit*(MaxPage/2)/max(1, answer.Bytes)))
			if answer.Likely != "" {
				next.begin(ctx, answer.Likely, nextLimit)
			}
			page, err = answer.Decode()
			return err
		})
		switch {
		case err != nil:
			return nil, err
		case answer.Bytes > MaxPage && limit == 1:
			return nil, errLargeObject
		case answer.Bytes > MaxPage:
			limit = max(1, limit/4)
			continue
		case token == "":
			version = page.Version
		case page.Version != version:
			return nil, errMixed
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all, nil
		}
		limit, token = nextLimit, page.Next
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
