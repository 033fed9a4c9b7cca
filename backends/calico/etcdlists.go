package calico

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// The most keys in one answer. 16 blocks of 4096 addresses take some 16 MiB, 5000 handles 1 MiB.
const (
	blocksListed  = 16
	handlesListed = 5000
)

// list implements datastore.
func (s etcd) list(ctx context.Context, k kind, reduce func(object) any) ([]any, error) {
	prefix, limit := blockPrefix, int64(blocksListed)
	if k == handles {
		prefix, limit = handlePrefix, handlesListed
	}
	return s.all(ctx, prefix, limit, func(o object) any {
		if o.kind = k; k == blocks && !strings.Contains(o.name, "/block/") {
			return nil
		}
		return reduce(o)
	})
}

// all returns what reduce makes of each object under a prefix, as list does. It starts over, a few
// times, if etcd no longer has the revision of the first page.
func (s etcd) all(ctx context.Context, prefix string, limit int64, reduce func(object) any) ([]any, error) {
	for restarts := 0; ; restarts++ {
		all, err := s.pages(ctx, prefix, limit, reduce)
		if !errors.Is(err, rpctypes.ErrCompacted) || restarts == 3 {
			return all, err
		}
	}
}

// pages is one attempt of all. It reads all pages at the revision of the first one.
func (s etcd) pages(ctx context.Context, prefix string, limit int64, reduce func(object) any) ([]any, error) {
	var all []any
	end := clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix))
	for from, revision := prefix, int64(0); ; {
		page, err := s.read(ctx, from, end, clientv3.WithLimit(limit), clientv3.WithRev(revision))
		if err != nil {
			return nil, err
		}
		for _, kv := range page.Kvs {
			if one := reduce(stored(kv)); one != nil {
				all = append(all, one)
			}
		}
		if !page.More || len(page.Kvs) == 0 {
			return all, nil
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
		if revision == 0 { // every answer has its own revision
			revision = page.Header.Revision
		}
	}
}

// nodes implements datastore.
func (s etcd) nodes(ctx context.Context) ([]node, error) {
	stored, err := s.resources(ctx, "nodes")
	if err != nil {
		return nil, err
	}
	all := make([]node, len(stored))
	for i, r := range stored {
		if all[i], err = readNode(r); err != nil {
			return nil, fmt.Errorf("decode %s: %w", resourcePrefix+"nodes/"+r.name, err)
		}
	}
	return all, nil
}

// resources implements datastore.
func (s etcd) resources(ctx context.Context, plural string) ([]resource, error) {
	prefix := resourcePrefix + plural + "/"
	found, err := s.all(ctx, prefix, blocksListed, func(o object) any { return resource{strings.TrimPrefix(o.name, prefix), o.raw} })
	all := make([]resource, len(found))
	for i := range found {
		all[i], _ = found[i].(resource)
	}
	return all, err
}
