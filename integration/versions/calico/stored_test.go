package calico_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
)

// A value is that of a key in etcd.
type value struct {
	Text     string
	Revision int64 // of the last write
}

// What is stored, by key.
type stored map[string]value

// stored reads all that the stores hold, out of etcd.
func (s fixture) stored(t *testing.T) stored {
	t.Helper()
	all := stored{}
	for _, e := range s.etcds {
		for _, prefix := range e.prefixes {
			answer, err := e.client.Get(t.Context(), prefix, clientv3.WithPrefix())
			if err != nil {
				t.Fatal(err)
			}
			for _, kv := range answer.Kvs {
				all[string(kv.Key)] = value{strings.TrimSpace(string(kv.Value)), kv.ModRevision}
			}
		}
	}
	return all
}

// decoded is an object without what the API server writes into its metadata at each
// write, and the part of it that Calico knows: the spec of a custom resource, or all of
// the value of a key.
func (v value) decoded(t *testing.T) (whole, content map[string]any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(v.Text))
	decoder.UseNumber()
	if err := decoder.Decode(&whole); err != nil {
		t.Fatalf("%s: %v", v.Text, err)
	}
	if metadata, ok := whole["metadata"].(map[string]any); ok {
		delete(metadata, "generation")
		delete(metadata, "managedFields")
	}
	if spec, ok := whole["spec"].(map[string]any); ok {
		return whole, spec
	}
	return whole, whole
}

// without returns what has to be stored when the addresses are released: the decoded
// objects of those that change, and the others as they are. A handle that is not
// counted any more is gone.
func (s stored) without(t *testing.T, released map[netip.Addr]bool) map[string]any {
	t.Helper()
	after := map[string]any{}
	for key, v := range s {
		after[key] = v
	}
	found := 0
	for key, v := range s {
		if !strings.Contains(key, "/ipamblocks/") && !strings.Contains(key, "/assignment/") {
			continue
		}
		whole, b := v.decoded(t)
		cidr := netip.MustParsePrefix(b["cidr"].(string))
		var ordinals []int
		ip := cidr.Addr()
		for ordinal := range b["allocations"].([]any) {
			if released[ip] {
				ordinals = append(ordinals, ordinal)
			}
			ip = ip.Next()
		}
		if len(ordinals) == 0 {
			continue
		}
		found += len(ordinals)
		for _, id := range calico.Free(b, ordinals) {
			uncount(t, after, key, id, cidr)
		}
		after[key] = whole
	}
	if found != len(released) {
		t.Fatalf("blocks have %d of the addresses %v", found, released)
	}
	return after
}

// uncount removes a block from a handle, which is stored beside the block of that key.
func uncount(t *testing.T, after map[string]any, block, id string, cidr netip.Prefix) {
	t.Helper()
	key := "/calico/ipam/v2/handle/" + id
	if root, _, ok := strings.Cut(block, "/ipamblocks/"); ok {
		key = root + "/ipamhandles/" + strings.ToLower(id)
	}
	whole, _ := after[key].(map[string]any)
	if v, ok := after[key].(value); ok {
		whole, _ = v.decoded(t)
	}
	if whole == nil {
		return
	}
	h := whole
	if spec, ok := whole["spec"].(map[string]any); ok {
		h = spec
	}
	counts := h["block"].(map[string]any)
	delete(counts, cidr.String())
	if after[key] = whole; len(counts) == 0 {
		delete(after, key)
	}
}

// comparable returns what is stored, with the objects decoded that were written since.
func (s stored) comparable(t *testing.T, before stored) map[string]any {
	t.Helper()
	all := map[string]any{}
	for key, v := range s {
		all[key] = v
		if v != before[key] {
			all[key], _ = v.decoded(t)
		}
	}
	return all
}
