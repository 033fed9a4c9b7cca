package calico

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A pagedKV answers range requests out of its keys, in their order. Each answer has a
// newer revision than the one before.
type pagedKV struct {
	clientv3.KV
	keys      []string
	value     []byte
	compacted int64 // requests for this revision fail, after the first one

	requests  int
	revisions []int64 // that were asked for
	largest   int     // the bytes of the largest page
}

func (kv *pagedKV) Get(_ context.Context, from string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	kv.requests++
	op := clientv3.OpGet(from, options...)
	again := slices.Contains(kv.revisions, op.Rev())
	kv.revisions = append(kv.revisions, op.Rev())
	if again && kv.compacted > 0 && op.Rev() == kv.compacted {
		return nil, rpctypes.ErrCompacted
	}
	page := &clientv3.GetResponse{Header: &etcdserverpb.ResponseHeader{Revision: int64(100 + kv.requests)}}
	first, _ := slices.BinarySearch(kv.keys, from)
	last := min(len(kv.keys), first+int(op.Limit()))
	page.More = last < len(kv.keys)
	for _, key := range kv.keys[first:last] {
		page.Kvs = append(page.Kvs, &mvccpb.KeyValue{Key: []byte(key), Value: kv.value, ModRevision: 7})
	}
	kv.largest = max(kv.largest, len(page.Kvs)*len(kv.value))
	return page, nil
}

// listPaged lists n handles of that size, and returns their names.
func listPaged(t *testing.T, kv *pagedKV, n, size int) []string {
	t.Helper()
	for i := range n {
		kv.keys = append(kv.keys, fmt.Sprintf("%snet.%06d", handlePrefix, i))
	}
	kv.value = []byte(strings.Repeat("x", size))
	all, err := etcd{&clientv3.Client{KV: kv}}.list(t.Context(), handles, func(o object) any { return o.name })
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range all {
		names = append(names, one.(string))
	}
	return names
}

// All pages show the store at the time of the first one. After a compaction, the list
// begins again at a new time.
func TestEtcdListIsOfOneRevision(t *testing.T) {
	for _, tt := range []struct {
		compacted int64
		want      []int64
	}{
		{0, []int64{0, 101, 101, 101}},
		{101, []int64{0, 101, 101, 101, 101, 101, 0, 107, 107, 107}}, // a request is sent four times
	} {
		kv := &pagedKV{compacted: tt.compacted}
		if names := listPaged(t, kv, 2000, 100); !slices.Equal(names, kv.keys) {
			t.Errorf("%d of %d keys were listed, or not in their order", len(names), len(kv.keys))
		}
		if diff := cmp.Diff(tt.want, kv.revisions); diff != "" {
			t.Errorf("revisions (-want +got):\n%s", diff)
		}
	}
}

// A list reads each key once, in few pages where the values are small, and in pages that
// fit into memory where they are large.
func TestEtcdPagesAreBoundByBytes(t *testing.T) {
	for _, tt := range []struct{ keys, size, requests, largest int }{
		{100_000, 150, 14, 2 << 20},
		{1_000, 30_000, 18, 2 << 20},
		{60, 1 << 20, 45, 16 << 20},
		{60, 3 << 20, 45, 48 << 20},
		{0, 1, 1, 0},
		{1, 1, 1, 1},
	} {
		kv := new(pagedKV)
		names := listPaged(t, kv, tt.keys, tt.size)
		if diff := cmp.Diff(kv.keys, names); diff != "" {
			t.Errorf("%d keys (-want +got):\n%s", tt.keys, diff)
		}
		if kv.requests > tt.requests || kv.largest > tt.largest {
			t.Errorf("%d keys of %d bytes: %d requests, and %d bytes in one", tt.keys, tt.size, kv.requests, kv.largest)
		}
	}
}
