package calico

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A pagedKV answers range requests from its keys, in order. Each answer has a newer revision than
// the one before.
type pagedKV struct {
	clientv3.KV
	keys      []string
	compacted int64 // requests for this revision fail, after the first one

	requests  int
	revisions []int64 // that were asked for
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
		page.Kvs = append(page.Kvs, &mvccpb.KeyValue{Key: []byte(key), ModRevision: 7})
	}
	return page, nil
}

// listPaged lists n blocks, and returns their names.
func listPaged(t *testing.T, kv *pagedKV, n int) []string {
	t.Helper()
	for i := range n {
		kv.keys = append(kv.keys, fmt.Sprintf("%sipv4/block/%06d", blockPrefix, i))
	}
	all, err := etcd{&clientv3.Client{KV: kv}}.list(t.Context(), blocks, func(o object) any { return o.name })
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range all {
		names = append(names, one.(string))
	}
	return names
}

// All pages show the store at the time of the first one. After a compaction, the list starts over
// at a new time.
func TestEtcdListIsOfOneRevision(t *testing.T) {
	for _, tt := range []struct {
		compacted int64
		want      []int64
	}{
		{0, []int64{0, 101, 101, 101}},
		{101, []int64{0, 101, 101, 101, 101, 101, 0, 107, 107, 107}}, // a request is sent four times
	} {
		kv := &pagedKV{compacted: tt.compacted}
		if names := listPaged(t, kv, 3*blocksListed+1); !slices.Equal(names, kv.keys) {
			t.Errorf("%d of %d keys were listed, or not in their order", len(names), len(kv.keys))
		}
		if diff := cmp.Diff(tt.want, kv.revisions); diff != "" {
			t.Errorf("revisions (-want +got):\n%s", diff)
		}
	}
}
