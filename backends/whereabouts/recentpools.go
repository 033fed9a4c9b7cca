package whereabouts

import (
	"context"
	"time"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
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

// readPools reads the IPPools. If they were read before, it reads only those that have changed:
// the IPPools of a large cluster have dozens of megabytes. If more than a quarter have changed,
// it reads all.
func (b *Overlapping) readPools(ctx context.Context) ([]holder, error) {
	all := func() ([]holder, error) { return list(ctx, b.client, poolResource, newHolder) }
	if len(b.pools) == 0 {
		return all()
	}
	known := make(map[version]holder, len(b.pools))
	for _, h := range b.pools {
		known[h.version()] = h
	}
	metadata, err := kube.ListMetadata(ctx, b.client, func(get *rest.Request) *rest.Request { return onResource(get, poolResource) })
	if err != nil {
		return nil, kube.Listed(err, poolResource, v1alpha1.SchemeGroupVersion.Group)
	}
	pools := make([]holder, len(metadata))
	changed := make(map[int]string) // the names, by index
	for i, m := range metadata {
		if m.ResourceVersion == "" {
			return all() // its metadata cannot be decoded
		}
		name, same := m.Namespace+"/"+m.Name, false
		if pools[i], same = known[version{name, m.ResourceVersion}]; !same {
			changed[i] = name
		}
	}
	if 4*len(changed) > len(metadata) {
		return all()
	}
	var g errgroup.Group
	g.SetLimit(b.atOnce)
	for i, name := range changed {
		g.Go(func() (err error) {
			pools[i], err = b.readPool(ctx, name)
			return err
		})
	}
	return pools, g.Wait()
}

// readPool reads one IPPool, and returns an empty one if it is gone. It asks for a list of one
// object, because the backend has no right to get an IPPool.
func (b *Overlapping) readPool(ctx context.Context, pool string) (holder, error) {
	namespace, name := splitPool(pool)
	found, err := kube.ListReduced(ctx, b.client, func(get *rest.Request) *rest.Request {
		return onResource(get, poolResource).Namespace(namespace).Param("fieldSelector", "metadata.name="+name)
	}, newHolder)
	for _, h := range found {
		if h.pool() == pool {
			return h, err
		}
	}
	return holder{}, kube.Listed(err, poolResource, v1alpha1.SchemeGroupVersion.Group)
}
