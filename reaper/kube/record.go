package kube

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// A Recording has the lists that were read whole, each as the last reader had it, and why the others were not
// read. It is safe for concurrent use.
type Recording struct {
	// Keep returns what is kept of an object of a list; nil if nothing is. The kind is that of the
	// list if the reader knows it.
	Keep func(kind string, object json.RawMessage) json.RawMessage

	Lists  map[string]RecordedList // by path
	Unread map[string]error        // by path
	mu     sync.Mutex
}

// NewRecording returns a Recording without a list.
func NewRecording(keep func(kind string, object json.RawMessage) json.RawMessage) *Recording {
	return &Recording{Keep: keep, Lists: make(map[string]RecordedList), Unread: make(map[string]error)}
}

// A RecordedList is what was kept of a list.
type RecordedList struct {
	metav1.TypeMeta
	Items []json.RawMessage
}

// Record has all lists recorded that are read through a client from Remember.
func Record(client rest.Interface, r *Recording) { modeOf(client).recording = r }

// readRecorded is ReadList for a list that is recorded. It asks for JSON in place of protobuf.
func readRecorded[T any](ctx context.Context, mode *listMode, request func() *rest.Request, of Form[T]) ([]T, error) {
	type read struct {
		item T
		kept json.RawMessage
	}
	var list RecordedList
	both := Form[read]{
		apiVersion: of.apiVersion, kind: of.kind,
		json: func(object json.RawMessage) (read, error) {
			item, err := of.json(object)
			return read{item, mode.recording.Keep(strings.TrimSuffix(of.kind, "List"), object)}, err
		},
		named: func(named metav1.TypeMeta) { list.TypeMeta = named },
	}
	all, err := readList(ctx, mode, func() *rest.Request {
		r := request()
		if of.Protobuf != nil {
			r.SetHeader("Accept", runtime.ContentTypeJSON)
		}
		return r
	}, both)
	path := request().URL().Path
	if err != nil {
		mode.recording.mu.Lock()
		defer mode.recording.mu.Unlock()
		mode.recording.Unread[path] = err
		return nil, err
	}
	items := make([]T, len(all))
	for i, one := range all {
		items[i] = one.item
		if one.kept != nil {
			list.Items = append(list.Items, one.kept)
		}
	}
	mode.recording.mu.Lock()
	defer mode.recording.mu.Unlock()
	mode.recording.Lists[path] = list
	return items, nil
}
