package calico

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Where Calico keeps what in etcd.
const (
	etcdRoot      = "/calico/"
	etcdBlocks    = "/calico/ipam/v2/assignment/"
	etcdHandles   = "/calico/ipam/v2/handle/"
	etcdHosts     = "/calico/ipam/v2/host/"
	etcdResources = "/calico/resources/v3/projectcalico.org/"
)

// etcdStore names objects by their keys.
type etcdStore struct{ client *clientv3.Client }

// BlockName implements store.
func (etcdStore) BlockName(cidr netip.Prefix) string {
	return etcdBlocks + family(cidr) + "/block/" + etcdCIDR(cidr)
}

// HandleName implements store.
func (etcdStore) HandleName(id string) string { return etcdHandles + id }

// AffinityName implements store.
func (etcdStore) AffinityName(node string, cidr netip.Prefix) string {
	return etcdHosts + node + "/" + family(cidr) + "/block/" + etcdCIDR(cidr)
}

func etcdCIDR(cidr netip.Prefix) string { return strings.Replace(cidr.String(), "/", "-", 1) }

// Get implements store.
func (s etcdStore) Get(ctx context.Context, _ Kind, name string) (Object, error) {
	objects, err := s.read(ctx, name)
	if err != nil {
		return Object{}, err
	}
	o, ok := objects[name]
	if !ok {
		return o, fmt.Errorf("get %s: %w", name, ErrNotFound)
	}
	return o, nil
}

// List implements store.
func (s etcdStore) List(ctx context.Context, kind Kind) (map[string]Object, error) {
	switch kind {
	case Block:
		return s.read(ctx, etcdBlocks, clientv3.WithPrefix())
	case Handle:
		return s.read(ctx, etcdHandles, clientv3.WithPrefix())
	case Affinity:
		return s.read(ctx, etcdHosts, clientv3.WithPrefix())
	default:
		return nil, fmt.Errorf("list %s: no such kind", kind)
	}
}

func (s etcdStore) read(ctx context.Context, key string, opts ...clientv3.OpOption) (map[string]Object, error) {
	response, err := s.client.Get(ctx, key, opts...)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	objects := map[string]Object{}
	for _, kv := range response.Kvs {
		name, value := string(kv.Key), string(kv.Value)
		objects[name] = Object{
			Name: name, Revision: strconv.FormatInt(kv.ModRevision, 10), Content: value, Raw: value,
		}
	}
	return objects, nil
}

// Put implements store.
func (s etcdStore) Put(ctx context.Context, _ Kind, name, content string) error {
	_, err := s.client.Put(ctx, name, content)
	return err
}

// Delete implements store.
func (s etcdStore) Delete(ctx context.Context, _ Kind, name string) error {
	response, err := s.client.Delete(ctx, name)
	if err == nil && response.Deleted == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	return nil
}

// Versions implements store.
func (s etcdStore) Versions(ctx context.Context) (map[string]string, error) {
	objects, err := s.read(ctx, etcdRoot, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for name, o := range objects {
		all[name] = o.Revision
	}
	return all, nil
}

func (s etcdStore) putResource(ctx context.Context, plural, kind, name string, spec map[string]any) error {
	text, err := json.Marshal(map[string]any{
		"kind": kind, "apiVersion": "projectcalico.org/v3", "spec": spec, "metadata": map[string]string{
			"name": name, "uid": "8d5c9a3e-5b5f-4f4e-9f0e-2a8f0c6f5f01", "creationTimestamp": "2024-03-01T12:00:00Z",
		},
	})
	if err != nil {
		return err
	}
	return s.Put(ctx, "", etcdResources+plural+"/"+name, string(text))
}

// clear deletes everything that Calico stores.
func (s etcdStore) clear(ctx context.Context) error {
	_, err := s.client.Delete(ctx, etcdRoot, clientv3.WithPrefix())
	return err
}
