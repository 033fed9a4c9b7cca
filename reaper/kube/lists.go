package kube

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// readList reads every object of a list, by quorum reads. It returns the whole list or an error,
// never a part. request returns a new request for the list on each call.
//
// It decodes the objects one by one as they come, so that it holds no answer. It decodes an object
// that is read again more than once.
//
// It reads the list in one answer where the API server has it in its cache, and in pages
// elsewhere and after such an answer broke off: the API server ends each answer after its
// --request-timeout.
func readList[T any](ctx context.Context, mode *listMode, request func() *rest.Request, of listForm[T]) (page[T], error) {
	if mode.whole(ctx) {
		list, err := readAnswer(ctx, request(), of, true)
		if mode.settled(ctx, err) {
			return list, err
		}
	}
	return readPages(ctx, pageSize, pagesOf(request, of))
}

// pagesOf returns the function that requests the pages of a list.
func pagesOf[T any](request func() *rest.Request, of listForm[T]) pageFunc[T] {
	return func(ctx context.Context, token string, limit int) (page[T], error) {
		r := request().Param("limit", strconv.Itoa(limit))
		if token != "" {
			r = r.Param("continue", token)
		}
		return readAnswer(ctx, r, of, false)
	}
}

// readAnswer makes a request, and decodes the answer to its end: the whole list, or a page.
func readAnswer[T any](ctx context.Context, request *rest.Request, of listForm[T], whole bool) (page[T], error) {
	stream, err := request.Stream(ctx)
	if err != nil {
		return page[T]{}, err
	}
	defer stream.Close()
	body := &answerBody{from: stream, left: MaxPage, whole: whole}
	list, err := of.read(body)
	switch {
	case err != nil:
		return page[T]{}, err
	case whole && list.next != "":
		return page[T]{}, errOnePage
	}
	list.bytes = body.read
	return list, nil
}

// errOnePage is the error of an answer with a part of the list.
var errOnePage = errors.New("the answer is a page, and a list was requested")

// An answerBody is the body of an answer. It has at most MaxPage bytes: all of it, or, with a whole
// list, each object. After an error, it reads nothing: a json.Decoder forgets an error that comes
// with the last bytes, and reads again.
type answerBody struct {
	from  io.Reader
	whole bool
	read  int
	left  int
	err   error
}

// Read implements io.Reader.
func (b *answerBody) Read(p []byte) (n int, err error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case b.left == 0:
		return 0, errLargeObject
	}
	n, b.err = b.from.Read(p[:min(len(p), b.left)])
	b.read, b.left = b.read+n, b.left-n
	return n, b.err
}

// next says that an object was read.
func (b *answerBody) next() {
	if b.whole {
		b.left = MaxPage
	}
}

// A listForm says what a list is called, and how its objects are decoded: those of JSON, and those
// of protobuf. An API server that is asked for protobuf may answer in JSON.
type listForm[T any] struct {
	apiVersion, kind string // of the list; empty if any will do
	json             func(object json.RawMessage) (T, error)
	protobuf         func(object []byte) (T, error) // nil: the list is requested in JSON
}

// formOf returns the form of a list of API objects, which are reduced.
func formOf[O, T any, P interface {
	*O
	Unmarshal(message []byte) error
}](apiVersion, kind string, reduce func(*O) T) listForm[T] {
	object := func(decode func(into *O) error) (T, error) {
		o := new(O)
		if err := decode(o); err != nil {
			return *new(T), err
		}
		return reduce(o), nil
	}
	return listForm[T]{
		apiVersion: apiVersion, kind: kind,
		json:     func(data json.RawMessage) (T, error) { return object(func(o *O) error { return Decode(data, o) }) },
		protobuf: func(data []byte) (T, error) { return object(func(o *O) error { return P(o).Unmarshal(data) }) },
	}
}

// read decodes a list, or a page of one, to its end.
func (f listForm[T]) read(body *answerBody) (page[T], error) {
	from := bufio.NewReaderSize(body, 64<<10)
	switch prefix, err := from.Peek(len(protobufPrefix)); {
	case err != nil && !errors.Is(err, io.EOF): // JSON may be shorter
		return page[T]{}, err
	case f.protobuf != nil && string(prefix) == protobufPrefix:
		return readProtobufList(from, f, body.next)
	}
	return readJSONList(from, f, body.next)
}

// fromCache is the first version of Kubernetes in which the API server always answers a
// quorum read of a list from its cache, and sends the answer object by object. An earlier
// one reads the whole list from etcd, and holds the answer.
var fromCache = version.MustParseGeneric("1.34.0")

// versionTimeout limits the request for the version of the API server.
const versionTimeout = 10 * time.Second

// A listMode says whether the lists of an API server are read whole or in pages. It is safe
// for concurrent use.
type listMode struct {
	client rest.Interface // asks for the version
	ask    sync.Once
	pages  atomic.Bool
}

// whole reports whether lists are read whole, by the version of the API server. If the version is
// not known, they are read in pages. It asks the API server once.
func (m *listMode) whole(ctx context.Context) bool {
	m.ask.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, versionTimeout)
		defer cancel()
		var served apiversion.Info
		err := Discover(ctx, m.client, &served, "/version")
		v, wrong := version.ParseGeneric(served.GitVersion)
		m.pages.Store(err != nil || wrong != nil || v.LessThan(fromCache))
	})
	return !m.pages.Load()
}

// settled reports whether a request for a whole list was answered, or failed as requests for
// its pages would. Otherwise the answer broke off, as it does when it takes longer than a request
// may: this list and the next ones are read in pages.
func (m *listMode) settled(ctx context.Context, err error) bool {
	var silent silentError
	if err == nil || ctx.Err() != nil || errors.Is(err, reaper.ErrRefused) || errors.As(err, &silent) ||
		apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return true
	}
	m.pages.Store(true)
	return false
}

// Remember returns a client with which ListRaw and ListReduced ask but once whether lists are
// read whole.
func Remember(client rest.Interface) rest.Interface {
	return &remembering{client, &listMode{client: client}}
}

// A remembering is a client that remembers it.
type remembering struct {
	rest.Interface
	mode *listMode
}

// modeOf returns what the client remembers; nothing yet if it does not.
func modeOf(client rest.Interface) *listMode {
	if r, ok := client.(*remembering); ok {
		return r.mode
	}
	return &listMode{client: client}
}
