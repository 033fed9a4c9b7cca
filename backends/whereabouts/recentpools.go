package whereabouts

import (
	"context"
	"encoding/json"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

// poolsSince returns the IPPools as read after the given time. Concurrent calls share one
// reading.
func (b *Overlapping) poolsSince(ctx context.Context, since time.Time) ([]holder, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.read.After(since) {
		return b.pools, nil
	}
	now := time.Now()
	pools, err := b.readPools(ctx)
	if err != nil {
		return nil, err
	}
	b.pools, b.read = pools, now
	return pools, nil
}

// A version names one state of an IPPool: two IPPools with the same version are equal. The
// API server gives a resourceVersion to every object.
type version struct{ pool, resourceVersion string }

// metadataOnly asks the API server for only the metadata of objects.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// readPools reads the IPPools. If they were read before, it reads only those that have changed:
// the IPPools of a large cluster have dozens of megabytes. If more than a quarter have changed,
// it reads all.
func (b *Overlapping) readPools(ctx context.Context) ([]holder, error) {
	all := func() ([]holder, error) { return listReduced(ctx, b.client, poolResource, newHolder) }
	if len(b.pools) == 0 {
		return all()
	}
	known := make(map[version]holder, len(b.pools))
	for _, h := range b.pools {
		known[h.version()] = h
	}
	versions, err := listReduced(ctx, b.client, poolResource,
		func(item json.RawMessage) version { return newHolder(item).version() },
		func(r *rest.Request) *rest.Request { return r.SetHeader("Accept", metadataOnly) })
	if err != nil {
		return nil, err
	}
	pools := make([]holder, len(versions))
	var changed []int
	for i, v := range versions {
		if v.resourceVersion == "" {
			return all() // its metadata cannot be decoded
		}
		same := false
		if pools[i], same = known[v]; !same {
			changed = append(changed, i)
		}
	}
	if 4*len(changed) > len(versions) {
		return all()
	}
	var g errgroup.Group
	g.SetLimit(b.atOnce)
	for _, i := range changed {
		g.Go(func() (err error) {
			pools[i], err = b.readPool(ctx, versions[i].pool)
			return err
		})
	}
	return pools, g.Wait()
}

// readPool reads one IPPool, and returns an empty one if it is gone. It asks for a list of one
// object, because the backend has no right to get an IPPool.
func (b *Overlapping) readPool(ctx context.Context, pool string) (holder, error) {
	namespace, name := splitPool(pool)
	found, err := listReduced(ctx, b.client, poolResource, newHolder, func(r *rest.Request) *rest.Request {
		return r.Namespace(namespace).Param("fieldSelector", "metadata.name="+name)
	})
	for _, h := range found {
		if h.pool() == pool {
			return h, err
		}
	}
	return holder{}, err
}
