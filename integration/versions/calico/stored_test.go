package calico_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A value is that of a key in etcd.
type value struct {
	Text     string
	Revision int64 // of the last write; 0 of one that a run writes
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

// without returns what has to be stored when the addresses are released. Of a
// block, allocations, queue and attributes change as Calico would change them, the
// ordinals' own numbers go, and the number of writes goes up. Their handles do not
// count them any more, and one without a count is gone. It shares no code with what
// it judges, and moves no byte of anything else.
func (s stored) without(t *testing.T, released map[netip.Addr]bool) stored {
	t.Helper()
	after := maps.Clone(s)
	left := maps.Clone(released)
	for key, v := range s {
		if !strings.Contains(key, "/ipamblocks/") && !strings.Contains(key, "/assignment/") {
			continue
		}
		b := parse(t, content(t, v.Text))
		cidr := netip.MustParsePrefix(unquote(b.get("cidr")))
		var ordinals []int
		ip := cidr.Addr()
		for ordinal := range elements(t, b.get("allocations")) {
			if left[ip] {
				ordinals = append(ordinals, ordinal)
				delete(left, ip)
			}
			ip = ip.Next()
		}
		if len(ordinals) == 0 {
			continue
		}
		for _, id := range b.free(t, ordinals) {
			after.uncount(t, key, id, cidr)
		}
		after[key] = value{Text: withContent(t, v.Text, b)}
	}
	if len(left) > 0 {
		t.Fatalf("no block has %v", left)
	}
	return after
}

// free releases the ordinals of a block, and returns the handles of which it has no
// address any more.
func (o *object) free(t *testing.T, ordinals []int) []string {
	t.Helper()
	allocations, attributes := elements(t, o.get("allocations")), elements(t, o.get("attributes"))
	unallocated := elements(t, o.get("unallocated"))
	numbers := parse(t, cmp.Or(string(o.get("sequenceNumberForAllocation")), "null"))
	freed := map[string]bool{}
	for _, ordinal := range ordinals {
		freed[handleOf(t, attributes[number(t, allocations[ordinal])])] = true
		allocations[ordinal] = json.RawMessage("null")
		unallocated = append(unallocated, json.RawMessage(strconv.Itoa(ordinal)))
		numbers.remove(strconv.Itoa(ordinal))
	}
	var kept []json.RawMessage
	moved := map[string]json.RawMessage{"null": json.RawMessage("null")}
	for i, attribute := range attributes {
		index := strconv.Itoa(i)
		if slices.ContainsFunc(allocations, func(a json.RawMessage) bool { return string(a) == index }) {
			moved[index] = json.RawMessage(strconv.Itoa(len(kept)))
			kept = append(kept, attribute)
			delete(freed, handleOf(t, attribute))
		}
	}
	for ordinal, index := range allocations {
		allocations[ordinal] = moved[string(index)]
	}
	o.set("allocations", join(allocations))
	o.set("unallocated", join(unallocated))
	o.set("attributes", join(kept))
	o.set("sequenceNumber", json.RawMessage(strconv.FormatInt(int64(number(t, o.get("sequenceNumber")))+1, 10)))
	if len(numbers) > 0 || strings.HasPrefix(string(o.get("sequenceNumberForAllocation")), "{") {
		o.set("sequenceNumberForAllocation", numbers.text())
	}
	delete(freed, "")
	return slices.Collect(maps.Keys(freed))
}

// uncount removes a block from a handle, and a handle without a block. The handle is
// stored beside the block of that key.
func (s stored) uncount(t *testing.T, block, id string, cidr netip.Prefix) {
	t.Helper()
	key := "/calico/ipam/v2/handle/" + id
	if root, _, ok := strings.Cut(block, "/ipamblocks/"); ok {
		key = root + "/ipamhandles/" + strings.ToLower(id)
	}
	v, ok := s[key]
	if !ok {
		return
	}
	h := parse(t, content(t, v.Text))
	counts := parse(t, string(h.get("block")))
	counts.remove(cidr.String())
	if len(counts) == 0 {
		delete(s, key)
		return
	}
	h.set("block", counts.text())
	s[key] = value{Text: withContent(t, v.Text, h)}
}

// afterWrite returns what is stored without what a write changes of any object: its
// revision and, in the API server, the generation and who manages its fields. The
// generation must have gone up by one.
func (s stored) afterWrite(t *testing.T, before stored) stored {
	t.Helper()
	all := stored{}
	for key, v := range s {
		was, there := before[key]
		if there && was.Revision != v.Revision {
			v = value{Text: unmanaged(t, v.Text)}
			if got, want := generation(t, s[key].Text), generation(t, was.Text)+1; strings.HasPrefix(key, "/registry/") && got != want {
				t.Errorf("%s has generation %d, want %d", key, got, want)
			}
		}
		all[key] = v
	}
	return all
}
