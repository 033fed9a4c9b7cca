package whereabouts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A poolsRead has the IPPools, and when the reading of their list began.
type poolsRead struct {
	items    []json.RawMessage
	versions []version // of the items
	at       time.Time
}

// A version names one state of an IPPool: two IPPools with the same version are equal. The
// API server gives a resourceVersion to every object.
type version struct{ pool, resourceVersion string }

// poolsSince returns the IPPools as they were read after the given time. It reads them
// again if they were not. Concurrent calls share one reading, and a call for which the last
// one is recent enough does not wait for the next.
func (b *Overlapping) poolsSince(ctx context.Context, since time.Time) ([]json.RawMessage, error) {
	if last := b.pools.Load(); last != nil && last.at.After(since) {
		return last.items, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	last := b.pools.Load()
	if last != nil && last.at.After(since) {
		return last.items, nil
	}
	read, err := b.readPools(ctx, last)
	if err != nil {
		return nil, err
	}
	b.pools.Store(&read)
	return read.items, nil
}

// readPools reads the IPPools. Of those that were read before, it reads again only the ones
// that have changed: the IPPools of a large cluster have dozens of megabytes, and few of them
// change from one batch to the next. Without earlier ones, or if most of them have changed,
// it reads all.
func (b *Overlapping) readPools(ctx context.Context, last *poolsRead) (poolsRead, error) {
	if last == nil {
		return b.allPools(ctx)
	}
	read := poolsRead{at: time.Now()}
	var err error
	read.versions, err = listReduced(ctx, b.client, poolResource, readVersion, func(r *rest.Request) *rest.Request {
		return r.SetHeader("Accept", metadataOnly)
	})
	if err != nil {
		return read, err
	}
	known := make(map[version]json.RawMessage, len(last.items))
	for i, v := range last.versions {
		known[v] = last.items[i]
	}
	var changed []int
	read.items = make([]json.RawMessage, len(read.versions))
	for i, v := range read.versions {
		item, same := known[v]
		switch read.items[i] = item; {
		case v == version{}:
			return b.allPools(ctx)
		case !same || v.resourceVersion == "":
			changed = append(changed, i)
		}
	}
	if 2*len(changed) > len(read.items) {
		return b.allPools(ctx)
	}
	err = b.readAgain(ctx, read, changed)
	return read, err
}

// allPools reads all IPPools.
func (b *Overlapping) allPools(ctx context.Context) (poolsRead, error) {
	read := poolsRead{at: time.Now()}
	var err error
	if read.items, err = list(ctx, b.client, poolResource); err != nil {
		return read, err
	}
	for _, item := range read.items {
		read.versions = append(read.versions, readVersion(item))
	}
	return read, nil
}

// poolsAtOnce is how many IPPools are read at the same time.
const poolsAtOnce = 8

// readAgain reads some of the IPPools one by one, into their places. One that is gone by now
// is empty. It asks
// for a list of one object, because the backend has no right to get an IPPool.
func (b *Overlapping) readAgain(ctx context.Context, read poolsRead, some []int) error {
	var g errgroup.Group
	g.SetLimit(poolsAtOnce)
	for _, i := range some {
		g.Go(func() error {
			namespace, name := splitPool(read.versions[i].pool)
			items, err := list(ctx, b.client, poolResource, func(r *rest.Request) *rest.Request {
				return r.Namespace(namespace).Param("fieldSelector", "metadata.name="+name)
			})
			asked := read.versions[i].pool
			read.items[i], read.versions[i] = json.RawMessage("{}"), version{}
			for _, item := range items {
				if read.items[i], read.versions[i] = item, readVersion(item); read.versions[i].pool != asked {
					return fmt.Errorf("the answer to a request for IPPool %s has IPPool %s", asked, read.versions[i].pool)
				}
			}
			return err
		})
	}
	return g.Wait()
}

// metadataOnly asks the API server to leave out all but the metadata of objects.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// readVersion reads the version of an IPPool. It decodes no more than the metadata, which
// the API server writes before the spec. Of an IPPool whose metadata cannot be decoded, it
// returns the zero version.
func readVersion(item json.RawMessage) version {
	fields := json.NewDecoder(bytes.NewReader(item))
	for {
		switch field, err := fields.Token(); {
		case err != nil || field == json.Delim('}'):
			return version{}
		case field == json.Delim('{'):
		case field == "metadata":
			var metadata json.RawMessage
			var o object
			if fields.Decode(&metadata) != nil || kube.Decode(metadata, &o.Metadata) != nil {
				return version{}
			}
			return version{o.pool(), o.Metadata.ResourceVersion}
		default:
			var skipped json.RawMessage
			if fields.Decode(&skipped) != nil {
				return version{}
			}
		}
	}
}
