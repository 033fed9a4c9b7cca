package calico

import (
	"context"
	"errors"
	"net/netip"
)

// The pools that Ready makes. A block has 64 addresses.
var (
	Pool4 = netip.MustParsePrefix("10.30.0.0/24")
	Pool6 = netip.MustParsePrefix("fd30::/112")
)

// Ready makes an empty datastore give addresses: it creates a node and the pools four and six. It
// writes what calicoctl would store, in a hundredth of the time.
func (d *Datastore) Ready(ctx context.Context, node string) error {
	return errors.Join(d.Cluster.CreateNode(ctx, node, true), d.ReadyBeside(ctx, node))
}

// ReadyBeside is Ready for a cluster that has the node.
func (d *Datastore) ReadyBeside(ctx context.Context, node string) error {
	err := errors.Join(d.putPool(ctx, "four", Pool4, 26), d.putPool(ctx, "six", Pool6, 122))
	if d.Etcd == nil {
		return err
	}
	return errors.Join(err, d.putResource(ctx, "nodes", "Node", node, nodeSpec(node)))
}

func (d *Datastore) putPool(ctx context.Context, name string, cidr netip.Prefix, blockSize int) error {
	spec := poolSpec(cidr, blockSize)
	spec["allowedUses"] = []string{"Workload", "Tunnel"} // by default
	return d.putResource(ctx, string(pools), "IPPool", name, spec)
}

// ApplyPool applies a pool for any pod on any node.
func (d *Datastore) ApplyPool(ctx context.Context, name string, cidr netip.Prefix, blockSize int) error {
	return d.Apply(ctx, "IPPool", map[string]string{"name": name}, poolSpec(cidr, blockSize))
}

func poolSpec(cidr netip.Prefix, blockSize int) map[string]any {
	return map[string]any{
		"cidr": cidr, "blockSize": blockSize, "ipipMode": "Never", "vxlanMode": "Never", "nodeSelector": "all()",
	}
}

// DeletePool deletes the pool. Its blocks stay if they have addresses.
func (d *Datastore) DeletePool(ctx context.Context, name string) error {
	_, err := d.Calicoctl(ctx, "", "delete", "ippool", name)
	return err
}

// CreateNode creates a ready node with the same name in Kubernetes and in Calico. The plugin gives
// no address on a node that does not exist.
func (d *Datastore) CreateNode(ctx context.Context, name string) error {
	if err := d.Cluster.CreateNode(ctx, name, true); err != nil || d.Etcd == nil {
		return err
	}
	return d.ApplyNode(ctx, name, name)
}

// ApplyNode applies a Calico node in etcd. It stands for the named Kubernetes node, or for none if
// that name is empty.
func (d *Datastore) ApplyNode(ctx context.Context, name, kubernetesNode string) error {
	return d.Apply(ctx, "Node", map[string]string{"name": name}, nodeSpec(kubernetesNode))
}

func nodeSpec(kubernetesNode string) map[string]any {
	if kubernetesNode == "" {
		return map[string]any{}
	}
	return map[string]any{"orchRefs": []map[string]string{{"nodeName": kubernetesNode, "orchestrator": "k8s"}}}
}
