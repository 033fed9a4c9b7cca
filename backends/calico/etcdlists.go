package calico

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// list implements datastore.
func (s etcd) list(ctx context.Context, k kind, reduce func(object) any) ([]any, error) {
	if k == handles {
		return s.reduced(ctx, handlePrefix, clientv3.GetPrefixRangeEnd(handlePrefix), reduce)
	}
	return s.reduced(ctx, blockPrefix, clientv3.GetPrefixRangeEnd(blockPrefix), func(o object) any {
		if !strings.Contains(o.name, "/block/") {
			return nil
		}
		o.kind = blocks
		return reduce(o)
	})
}

// nodes implements datastore.
func (s etcd) nodes(ctx context.Context) (map[string]string, error) {
	all, err := s.all(ctx, nodePrefix, clientv3.GetPrefixRangeEnd(nodePrefix))
	if err != nil {
		return nil, err
	}
	names := make(map[string]string, len(all))
	for _, o := range all {
		name, err := kubernetesNode(o.raw)
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", o.name, err)
		}
		if name != "" {
			names[strings.TrimPrefix(o.name, nodePrefix)] = name
		}
	}
	return names, nil
}

// ipReservations implements datastore.
func (s etcd) ipReservations(ctx context.Context) ([]ipReservation, error) {
	stored, err := s.all(ctx, ipResPrefix, clientv3.GetPrefixRangeEnd(ipResPrefix))
	if err != nil {
		return nil, err
	}
	all := make([]ipReservation, len(stored))
	for i, o := range stored {
		all[i] = readIPReservation(strings.TrimPrefix(o.name, ipResPrefix), o.raw)
	}
	return all, nil
}

// ipPools implements datastore.
func (s etcd) ipPools(ctx context.Context) ([]ipPool, error) {
	stored, err := s.all(ctx, ipPoolPrefix, clientv3.GetPrefixRangeEnd(ipPoolPrefix))
	if err != nil {
		return nil, err
	}
	all := make([]ipPool, len(stored))
	for i, o := range stored {
		all[i] = readIPPool(strings.TrimPrefix(o.name, ipPoolPrefix), o.raw)
	}
	return all, nil
}

// kubernetesNode returns the name of the Kubernetes node in the orchRefs of a node
// of Calico's. It returns an empty string if they name none.
func kubernetesNode(data []byte) (string, error) {
	var node struct {
		Spec struct {
			Refs []struct {
				Name         string `json:"nodeName"`
				Orchestrator string `json:"orchestrator"`
			} `json:"orchRefs"`
		} `json:"spec"`
	}
	if err := kube.Decode(data, &node); err != nil {
		return "", err
	}
	for _, ref := range node.Spec.Refs {
		if ref.Orchestrator == "k8s" && ref.Name != "" {
			return ref.Name, nil
		}
	}
	return "", nil
}
