package whereabouts

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A poolsRead has the IPPools, and when their reading began.
type poolsRead struct {
	pools    []holder
	versions map[version]bool // of the pools
	at       time.Time
}

// A version names one state of an IPPool: two IPPools with the same version are equal. The
// API server gives a resourceVersion to every object.
type version struct{ pool, resourceVersion string }

// versionOf returns the version of an object; the zero version if its metadata cannot be
// decoded.
func versionOf(item json.RawMessage) version {
	var o object
	if kube.Decode(item, &o) != nil || o.Metadata.ResourceVersion == "" {
		return version{}
	}
	return version{o.pool(), o.Metadata.ResourceVersion}
}

// poolsSince returns the IPPools as they were after the given time. Concurrent calls share one
// reading. The IPPools of a large cluster have dozens of megabytes, so those that were read
// before are not read again if the API server says that all of them have the same versions.
func (b *Overlapping) poolsSince(ctx context.Context, since time.Time) ([]holder, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pools != nil && b.pools.at.After(since) {
		return b.pools.pools, nil
	}
	now := time.Now()
	if b.pools != nil {
		versions, err := listReduced(ctx, b.client, poolResource, versionOf, func(r *rest.Request) *rest.Request {
			return r.SetHeader("Accept", metadataOnly)
		})
		if err != nil {
			return nil, err
		}
		if same := setOf(versions); maps.Equal(same, b.pools.versions) && !same[version{}] {
			b.pools.at = now
			return b.pools.pools, nil
		}
	}
	now = time.Now()
	items, err := list(ctx, b.client, poolResource)
	if err != nil {
		return nil, err
	}
	read := poolsRead{at: now, versions: make(map[version]bool, len(items))}
	for _, item := range items {
		read.pools = append(read.pools, newHolder(item))
		read.versions[versionOf(item)] = true
	}
	b.pools = &read
	return read.pools, nil
}

// setOf returns the versions as a set.
func setOf(versions []version) map[version]bool {
	set := make(map[version]bool, len(versions))
	for _, v := range versions {
		set[v] = true
	}
	return set
}

// metadataOnly asks the API server to leave out all but the metadata of objects.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
