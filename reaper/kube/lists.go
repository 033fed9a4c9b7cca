package kube

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sethvargo/go-retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// ReadList reads every object of a list, by quorum reads. It returns the whole list or an
// error, never a part. request returns a new request for the list on each call. With a client
// from Remember, it asks the API server only once whether its lists are read whole.
//
// It decodes the objects one by one as they arrive, so that it never holds an answer. It
// decodes an object again if it reads it again.
//
// It reads the list in one answer if the API server has it in its cache, and in pages
// otherwise, or after that answer broke off: the API server ends each answer after its
// --request-timeout.
func ReadList[T any](ctx context.Context, client rest.Interface, request func() *rest.Request, of Form[T]) ([]T, error) {
	mode := modeOf(client)
	if mode.recording != nil {
		return readRecorded(ctx, mode, request, of)
	}
	return readList(ctx, mode, request, of)
}

func readList[T any](ctx context.Context, mode *listMode, request func() *rest.Request, of Form[T]) ([]T, error) {
	if mode.whole(ctx) {
		list, err := readAnswer(ctx, request(), of)
		if err == nil && list.next != "" {
			err = errOnePage
		}
		if mode.settled(ctx, err) {
			return list.items, err
		}
	}
	return ReadPages(ctx, pageSize, request, of)
}

// ReadPages is ReadList in pages, with at most limit objects on each.
func ReadPages[T any](ctx context.Context, limit int, request func() *rest.Request, of Form[T]) ([]T, error) {
	return readPages(ctx, func(ctx context.Context, token string) (page[T], error) {
		r := request().Param("limit", strconv.Itoa(limit))
		if token != "" {
			r = r.Param("continue", token)
		}
		return readAnswer(ctx, r, of)
	})
}

// readAnswer makes a request, and decodes the answer to its end: the whole list, or a page.
func readAnswer[T any](ctx context.Context, request *rest.Request, of Form[T]) (page[T], error) {
	stream, err := request.Stream(ctx)
	if err != nil {
		return page[T]{}, unread(err)
	}
	defer stream.Close()
	return of.read(NewObjectReader(stream))
}

// pageSize is the largest number of objects on a page of a list, as in kubectl.
const pageSize = 500

// errOnePage is the error for an answer with only part of the list.
var errOnePage = errors.New("the answer is one page of the list")

// An ObjectReader reads an answer or a file in which each object has at most MaxObject bytes.
// After an error, it reads nothing: a json.Decoder forgets an error that comes with the last
// bytes, and reads again.
type ObjectReader struct {
	from io.Reader
	left int
	err  error
}

// NewObjectReader returns a reader of the objects.
func NewObjectReader(from io.Reader) *ObjectReader { return &ObjectReader{from: from, left: MaxObject} }

// Read implements io.Reader. The error is ErrLargeObject if the current object is too large.
func (r *ObjectReader) Read(p []byte) (n int, err error) {
	switch {
	case r.err != nil:
		return 0, r.err
	case r.left == 0:
		return 0, ErrLargeObject
	}
	n, r.err = r.from.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, r.err
}

// Next begins an object. What was read ahead of it does not count.
func (r *ObjectReader) Next() { r.left = MaxObject }

// A Form says what a list is called, and how its objects are decoded, in JSON and in protobuf.
// An API server that is asked for protobuf may answer in JSON.
type Form[T any] struct {
	apiVersion, kind string // of the list; empty if any will do
	json             func(object json.RawMessage) (T, error)

	// Protobuf decodes an object in protobuf. If it is nil, the list must be in JSON.
	Protobuf func(object []byte) (T, error)

	named func(list metav1.TypeMeta) // is told what a list in JSON is, or each page of it; may be nil
}

// FormOf returns the form of a list of API objects, each passed to reduce.
func FormOf[O, T any, P interface {
	*O
	Unmarshal(message []byte) error
}](apiVersion, kind string, reduce func(*O) T) Form[T] {
	object := func(decode func(into *O) error) (T, error) {
		o := new(O)
		if err := decode(o); err != nil {
			return *new(T), err
		}
		return reduce(o), nil
	}
	return Form[T]{
		apiVersion: apiVersion, kind: kind,
		json:     func(data json.RawMessage) (T, error) { return object(func(o *O) error { return Decode(data, o) }) },
		Protobuf: func(data []byte) (T, error) { return object(func(o *O) error { return P(o).Unmarshal(data) }) },
	}
}

// read decodes a list, or a page of one, to its end.
func (f Form[T]) read(body *ObjectReader) (page[T], error) {
	from := bufio.NewReaderSize(body, 64<<10)
	switch prefix, err := from.Peek(len(protobufPrefix)); {
	case err != nil && !errors.Is(err, io.EOF): // JSON may be shorter
		return page[T]{}, err
	case f.Protobuf != nil && string(prefix) == protobufPrefix:
		return readProtobufList(from, f, body.Next)
	}
	return readJSONList(from, f, body.Next)
}

// fromCache is the first version of Kubernetes in which the API server always answers a quorum
// read of a list from its cache, and sends the answer object by object. Earlier ones read the
// whole list from etcd, and hold the answer.
var fromCache = version.MustParseGeneric("1.34.0")

// versionTimeout limits the request for the version of the API server.
const versionTimeout = 30 * time.Second

// FirstAnswer waits for the first answer of an API server, to a request for its version. The
// error says that none came, or that the credentials are not accepted: every request of a run
// would get the same answer, or wait for its timeout. The client is a RawClient.
func FirstAnswer(ctx context.Context, client rest.Interface, server string, limit time.Duration) error {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	mode := modeOf(client)
	mode.whole(timed)
	var status apierrors.APIStatus
	var failed *url.Error
	switch err := mode.unanswered; {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case timed.Err() != nil:
		return fmt.Errorf("the API server %s did not answer within %v", server, limit)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server %s does not accept the credentials: %w", server, err)
	case err == nil, errors.As(err, &status):
		return nil
	case errors.As(err, &failed):
		return fmt.Errorf("the API server %s cannot be reached: %w", server, failed.Err)
	default:
		return fmt.Errorf("the API server %s cannot be reached: %w", server, err)
	}
}

// A listMode says whether an API server's lists are read whole or in pages. It is safe for
// concurrent use.
type listMode struct {
	client     rest.Interface // asks for the version
	ask        sync.Once
	unanswered error // of that request; nil once it was answered
	pages      atomic.Bool
	recording  *Recording // nil unless lists are recorded
}

// whole reports, by the API server's version, whether lists are read whole. If the version is
// unknown, they are read in pages. It asks the API server once.
func (m *listMode) whole(ctx context.Context) bool {
	m.ask.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, versionTimeout)
		defer cancel()
		var served apiversion.Info
		var data []byte
		m.unanswered = Patiently(ctx, func(ctx context.Context) (err error) {
			data, err = Send(ctx, m.client.Get().AbsPath("/version").MaxRetries(0))
			return err
		})
		err := m.unanswered
		if err == nil {
			err = Decode(data, &served)
		}
		v, wrong := version.ParseGeneric(served.GitVersion)
		m.pages.Store(err != nil || wrong != nil || v.LessThan(fromCache))
	})
	return !m.pages.Load()
}

// settled reports whether a request for a whole list was answered, or failed as requests for
// its pages would. Otherwise the answer broke off, as it does when it takes longer than a
// request may: this list and later ones are read in pages.
func (m *listMode) settled(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil || errors.Is(err, ipam.ErrRefused) ||
		apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return true
	}
	m.pages.Store(true)
	return false
}

// Remember returns a client with which ListRaw and ListReduced ask only once whether lists are
// read whole.
func Remember(client rest.Interface) rest.Interface {
	return &remembering{client, &listMode{client: client}}
}

// InPages returns a client whose lists are read in pages, so that none waits for the version of the API
// server. It is for lists that are short.
func InPages(client rest.Interface) rest.Interface {
	mode := &listMode{client: client}
	mode.ask.Do(func() { mode.pages.Store(true) })
	return &remembering{client, mode}
}

// A remembering client knows how its lists are read.
type remembering struct {
	rest.Interface
	mode *listMode
}

// modeOf returns what the client remembers; a new listMode if it is not from Remember.
func modeOf(client rest.Interface) *listMode {
	if r, ok := client.(*remembering); ok {
		return r.mode
	}
	return &listMode{client: client}
}

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
var ErrLargeObject = ipam.Worded(fmt.Sprintf("an object has more than %d MiB", MaxObject>>20), ipam.ErrRefused)

// errMixed says that a list is from different times. A conforming API server reads all pages at
// the resourceVersion of the first.
var errMixed = ipam.Worded("the pages of the list have different resourceVersions", ipam.ErrRefused)

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

// metadataOnly asks for only the metadata of objects.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// ListMetadata reads only the metadata of every object of a list. The client is a RawClient,
// and narrow is as in ListRaw. An object that cannot be decoded has no name.
func ListMetadata(ctx context.Context, client rest.Interface, narrow func(get *rest.Request) *rest.Request) ([]metav1.ObjectMeta, error) {
	ask := func(get *rest.Request) *rest.Request { return narrow(get).SetHeader("Accept", metadataOnly) }
	return ListReduced(ctx, client, ask, func(item json.RawMessage) metav1.ObjectMeta {
		var object struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
		}
		_ = Decode(item, &object) // it has no name then
		return object.Metadata
	})
}
