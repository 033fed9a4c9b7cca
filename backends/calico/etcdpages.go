package calico

import (
	"context"
	"errors"
	"strconv"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// The limits on one range request. The number of keys in it follows from the size of the
// values before. A value has at most 1.5 MiB, so the first page has at most 24 MiB.
const (
	firstEtcdPage = 16      // keys
	mostEtcdPage  = 10_000  // keys
	etcdPageBytes = 2 << 20 // of keys and values
)

// all reads the keys from one up to another, all at one revision. If end is empty,
// it reads the first key only.
func (s etcd) all(ctx context.Context, from, end string) ([]object, error) {
	found, err := s.reduced(ctx, from, end, func(o object) any { return o })
	objects := make([]object, len(found))
	for i := range found {
		objects[i], _ = found[i].(object)
	}
	return objects, err
}

// reduced is all, and returns what reduce makes of each object, as datastore.list does.
func (s etcd) reduced(ctx context.Context, from, end string, reduce func(object) any) ([]any, error) {
	for restarts := 0; ; restarts++ {
		all, err := s.pages(ctx, from, end, reduce)
		if !errors.Is(err, rpctypes.ErrCompacted) || restarts == 3 {
			return all, err
		}
	}
}

// pages is one attempt of reduced. It reads all pages at the revision of the first one.
func (s etcd) pages(ctx context.Context, from, end string, reduce func(object) any) ([]any, error) {
	var all []any
	var revision int64
	for limit := int64(firstEtcdPage); ; {
		options := []clientv3.OpOption{clientv3.WithLimit(limit), clientv3.WithRev(revision)}
		if end != "" {
			options = append(options, clientv3.WithRange(end))
		}
		var page *clientv3.GetResponse
		err := patiently(ctx, func(ctx context.Context) (err error) {
			page, err = s.client.Get(ctx, from, options...)
			return err
		})
		if err != nil {
			return nil, err
		}
		size := 1
		for _, kv := range page.Kvs {
			size += len(kv.Key) + len(kv.Value)
			o := object{kind: handles, name: string(kv.Key), raw: kv.Value, revision: strconv.FormatInt(kv.ModRevision, 10)}
			if one := reduce(o); one != nil {
				all = append(all, one)
			}
		}
		n := len(page.Kvs)
		if !page.More || n == 0 {
			return all, nil
		}
		from = string(page.Kvs[n-1].Key) + "\x00"
		if revision == 0 { // every answer has the revision of its own time
			revision = page.Header.Revision
		}
		limit = int64(min(mostEtcdPage, max(1, etcdPageBytes*n/size), 8*n))
	}
}
