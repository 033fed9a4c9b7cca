package suite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The stores, as their plugins write them.
var (
	blocks = schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}
	pools  = schema.GroupVersionResource{Group: "whereabouts.cni.cncf.io", Version: "v1alpha1", Resource: "ippools"}
)

// The stores by name.
const (
	calico      = "calico"
	whereabouts = "whereabouts"
)

// An allocation is an address that a store has for a pod.
type allocation struct {
	store   string
	ip      netip.Addr
	pod     string // namespace/name
	sandbox string // its ID
	made    string // when, where the store says so; later ones sort behind
}

func (a allocation) String() string {
	return fmt.Sprintf("%s of %s (%s, %.8s)", a.ip, a.pod, a.store, a.sandbox)
}

// allocations reads all that the stores hold for pods, without a line of the
// program that is tested.
func (c *cluster) allocations(ctx context.Context) ([]allocation, error) {
	var all []allocation
	for _, store := range []struct {
		resource schema.GroupVersionResource
		read     func(map[string]any) ([]allocation, error)
	}{{blocks, readBlock}, {pools, readPool}} {
		list, err := c.dynamic.Resource(store.resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			some, err := store.read(item.Object["spec"].(map[string]any))
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", item.GetKind(), item.GetName(), err)
			}
			all = append(all, some...)
		}
	}
	return all, nil
}

// readBlock reads a block of Calico's.
func readBlock(spec map[string]any) ([]allocation, error) {
	var block struct {
		CIDR        netip.Prefix `json:"cidr"`
		Allocations []*int       `json:"allocations"`
		Attributes  []struct {
			Handle    string            `json:"handle_id"`
			Secondary map[string]string `json:"secondary"`
		} `json:"attributes"`
	}
	if err := convert(spec, &block); err != nil {
		return nil, err
	}
	var all []allocation
	for ordinal, attribute := range block.Allocations {
		if attribute == nil {
			continue
		}
		a := block.Attributes[*attribute]
		if a.Secondary["pod"] == "" {
			continue
		}
		_, sandbox, _ := strings.Cut(a.Handle, ".")
		all = append(all, allocation{
			calico, offset(block.CIDR, ordinal), a.Secondary["namespace"] + "/" + a.Secondary["pod"], sandbox, a.Secondary["timestamp"],
		})
	}
	return all, nil
}

// readPool reads a pool of Whereabouts'.
func readPool(spec map[string]any) ([]allocation, error) {
	var pool struct {
		Range       netip.Prefix `json:"range"`
		Allocations map[string]struct {
			ID     string `json:"id"`
			PodRef string `json:"podref"`
		} `json:"allocations"`
	}
	if err := convert(spec, &pool); err != nil {
		return nil, err
	}
	var all []allocation
	for key, a := range pool.Allocations {
		ordinal, err := strconv.Atoi(key)
		if err != nil {
			return nil, err
		}
		all = append(all, allocation{whereabouts, offset(pool.Range.Masked(), ordinal), a.PodRef, a.ID, ""})
	}
	return all, nil
}

// convert reads untyped values into typed ones.
func convert(from map[string]any, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// offset is the address so many after the first of a range.
func offset(in netip.Prefix, n int) netip.Addr {
	ip := in.Addr()
	for range n {
		ip = ip.Next()
	}
	return ip
}
