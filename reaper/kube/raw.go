package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"
)

// RawClient returns a client for any path of any API group. Its answers are the JSON that
// the API server sent. It remembers how long lists are best read.
func RawClient(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // to decode errors
	raw := rest.CopyConfig(config)
	raw.ContentType, raw.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	raw.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(raw)
	if err != nil {
		return nil, err
	}
	return Remember(client), nil
}

// Send makes a request and returns the body of the answer. If the API server refuses the
// request, the error has the reason. rest.Result.Raw alone would leave the reason in the
// body.
func Send(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// ListRaw reads every object of a list as the API server sends it, by quorum reads. narrow
// makes a GET request one for the list, and is called for each request.
func ListRaw(ctx context.Context, client rest.Interface, narrow func(get *rest.Request) *rest.Request) ([]json.RawMessage, error) {
	return ListReduced(ctx, client, narrow, func(item json.RawMessage) json.RawMessage { return item })
}

// ListReduced is ListRaw, and reduces the objects as they come, so that it does not hold all
// of them in full. It calls reduce from one goroutine at a time, for an object that is read
// again more than once, and also for one that is gone when the list is read again.
//
// It reads a list of more than one page, or of more than MaxPage bytes, at once where the API
// server answers lists from its cache. There, the pages behind the first one may come from
// etcd, which takes several times as long. If that answer breaks off, it reads pages. With a
// client of Remember, it asks the API server but once.
func ListReduced[T any](ctx context.Context, client rest.Interface, narrow func(get *rest.Request) *rest.Request, reduce func(json.RawMessage) T) ([]T, error) {
	request := func() *rest.Request { return narrow(client.Get()) }
	page := pageOf(request, func(data []byte) (metav1.ListInterface, []T, error) { return rawPage(data, reduce) })
	lists := listModeOf(client)
	all, err := Pages(ctx, pageSize, func(one context.Context, token string, limit int) (Answer[T], error) {
		if token != "" && lists.atOnce(ctx, client) {
			return Answer[T]{}, errLong
		}
		answer, err := page(one, token, limit)
		if answer.Bytes > MaxPage && lists.atOnce(ctx, client) {
			return Answer[T]{}, errLong
		}
		return answer, err
	})
	if !errors.Is(err, errLong) {
		return all, err
	}
	all, err = readWhole(ctx, request(), reduce)
	if lists.settled(ctx, err) {
		return all, err
	}
	return Pages(ctx, pageSize, page)
}

// errLong says that a list is long, and better read at once.
var errLong = refusedError{errors.New("the list is long")}

// rawPage decodes a page, and reduces its objects.
func rawPage[T any](data []byte, reduce func(json.RawMessage) T) (metav1.ListInterface, []T, error) {
	var page struct {
		Kind     string            `json:"kind"`
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := Decode(data, &page); err != nil {
		return nil, nil, fmt.Errorf("decode: %w", err)
	}
	if err := checkList(page.Kind, page.Metadata, page.Items != nil); err != nil {
		return nil, nil, err
	}
	reduced := make([]T, len(page.Items))
	for i, item := range page.Items {
		reduced[i] = reduce(item)
	}
	return &page.Metadata, reduced, nil
}

// checkList returns an error unless an answer is a list, or a page of one.
func checkList(kind string, meta metav1.ListMeta, hasItems bool) error {
	switch {
	case meta.ResourceVersion == "":
		return errNoList
	case !hasItems && kind != metadataList:
		return errNoItems
	case meta.ShardInfo != nil:
		return errShard
	}
	return nil
}

// errNoItems is the error of an answer that is an object.
var errNoItems = errors.New("the answer is not a list: it has no items")

// errNoList is the error of an answer that is not a list. Any object, even an empty one,
// decodes as a list without items. A real list has a resourceVersion.
var errNoList = errors.New("the answer is not a list: it has no resourceVersion")

// metadataList is the kind of a list of metadata alone. The API server sends null for its items
// if there are none.
const metadataList = "PartialObjectMetadataList"

// listPages reads every object of a list, page by page, by quorum reads. request returns a
// new request for the list on each call. decode must not keep the bytes.
func listPages[T any](ctx context.Context, first int, request func() *rest.Request, decode func([]byte) (metav1.ListInterface, []T, error)) ([]T, error) {
	return Pages(ctx, first, pageOf(request, decode))
}

// pageOf returns the PageFunc of a list. request and decode are those of listPages.
func pageOf[T any](request func() *rest.Request, decode func([]byte) (metav1.ListInterface, []T, error)) PageFunc[T] {
	return func(ctx context.Context, token string, limit int) (Answer[T], error) {
		r := request().Param("limit", strconv.Itoa(limit))
		if token != "" {
			r = r.Param("continue", token)
		}
		body := newBody()
		if err := receive(ctx, r, body); err != nil || body.Len() > MaxPage {
			defer bodies.Put(body)
			return Answer[T]{Bytes: body.Len()}, err
		}
		return Answer[T]{Bytes: body.Len(), Likely: likelyContinue(body.Bytes()), Decode: func() (Page[T], error) {
			defer bodies.Put(body)
			meta, items, err := decode(body.Bytes())
			switch {
			case err != nil:
				return Page[T]{}, err
			case meta.GetResourceVersion() == "":
				return Page[T]{}, errNoList
			}
			return Page[T]{items, meta.GetContinue(), meta.GetResourceVersion()}, nil
		}}, nil
	}
}

// bodies are buffers for answers: a list has many pages of about the same size.
var bodies sync.Pool

// newBody returns an empty one of bodies.
func newBody() *bytes.Buffer {
	body, ok := bodies.Get().(*bytes.Buffer)
	if !ok {
		return new(bytes.Buffer)
	}
	body.Reset()
	return body
}

// receive makes a request and adds the body of the answer to a buffer, but not more than
// one byte beyond MaxPage.
func receive(ctx context.Context, request *rest.Request, into *bytes.Buffer) error {
	body, err := request.Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = into.ReadFrom(io.LimitReader(body, MaxPage+1))
	return err
}

// likelyContinue returns the token of the next page, before the objects are decoded. In JSON,
// it is before the objects or, in a list of custom resources, behind them. It returns nothing
// if the token is in neither place.
func likelyContinue(body []byte) string {
	if bytes.HasPrefix(body, []byte(protobufPrefix)) {
		return protobufContinue(body)
	}
	values := json.NewDecoder(bytes.NewReader(body))
	for {
		switch token, err := values.Token(); {
		case err != nil:
			return ""
		case token == "items":
			key := []byte(`"metadata":`)
			_, behind, _ := bytes.Cut(body[max(0, bytes.LastIndex(body, key)):], key)
			return continueBy(json.NewDecoder(bytes.NewReader(behind)))
		case token == "metadata":
			return continueBy(values)
		}
	}
}

// continueBy returns the token in the metadata of a list, which comes next.
func continueBy(values *json.Decoder) string {
	var meta metav1.ListMeta
	_ = values.Decode(&meta) // the decoding of the page says what is wrong
	return meta.Continue
}

// Decode reads JSON case-sensitively, as the API server does, and keeps integers exact.
// It drops the fields that into does not have, so a decoded object must never be written
// back.
func Decode(data []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}
