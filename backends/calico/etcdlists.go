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
	all, err := s.resources(ctx, "nodes")
	if err != nil {
		return nil, err
	}
	names := make(map[string]string, len(all))
	for _, node := range all {
		name, err := kubernetesNode(node.data)
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", nodePrefix+node.name, err)
		}
		if name != "" {
			names[node.name] = name
		}
	}
	return names, nil
}

// resources implements datastore.
func (s etcd) resources(ctx context.Context, plural string) ([]resource, error) {
	prefix := resourcePrefix + plural + "/"
	stored, err := s.all(ctx, prefix, clientv3.GetPrefixRangeEnd(prefix))
	all := make([]resource, len(stored))
	for i, o := range stored {
		all[i] = resource{strings.TrimPrefix(o.name, prefix), o.raw}
	}
	return all, err
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
