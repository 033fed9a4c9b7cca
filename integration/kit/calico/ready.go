package calico

import (
	"context"
	"errors"
	"net/netip"
	"sync"
)

// The pools that Ready makes. A block has 64 addresses.
var (
	Pool4 = netip.MustParsePrefix("10.30.0.0/24")
	Pool6 = netip.MustParsePrefix("fd30::/112")
)

// recorded is what calicoctl once stored for Ready, by kind of datastore and node, and then by
// name. Storing that again takes a hundredth of the time.
var recorded struct {
	mu      sync.Mutex
	objects map[string]map[string]string
}

// Ready makes an empty datastore give addresses: it creates a node and the pools four and six.
func (d *Datastore) Ready(ctx context.Context, node string) error {
	recorded.mu.Lock()
	defer recorded.mu.Unlock()
	key := d.spec["datastoreType"] + " " + node
	if objects, ok := recorded.objects[key]; ok {
		return d.readyAgain(ctx, node, objects)
	}
	before, err := d.Dump(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(
		d.CreateNode(ctx, node), d.ApplyPool(ctx, "four", Pool4, 26), d.ApplyPool(ctx, "six", Pool6, 122),
	); err != nil {
		return err
	}
	objects, err := d.configuration(ctx)
	for name := range before {
		delete(objects, name)
	}
	if recorded.objects == nil {
		recorded.objects = map[string]map[string]string{}
	}
	recorded.objects[key] = objects
	return err
}

// configuration returns the contents that calicoctl stores for nodes and pools.
func (d *Datastore) configuration(ctx context.Context) (map[string]string, error) {
	if d.Etcd != nil {
		return d.Dump(ctx)
	}
	pools, err := d.List(ctx, pools)
	objects := map[string]string{}
	for name, o := range pools {
		objects[name] = o.Content
	}
	return objects, err
}

// readyAgain is Ready with what was recorded.
func (d *Datastore) readyAgain(ctx context.Context, node string, objects map[string]string) error {
	if err := d.Cluster.CreateNode(ctx, node, true); err != nil {
		return err
	}
	for name, content := range objects {
		if err := d.Put(ctx, pools, name, content); err != nil {
			return err
		}
	}
	return nil
}
