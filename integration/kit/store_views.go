package kit

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// writeCount matches Calico's count of the writes of a block.
var writeCount = regexp.MustCompile(`"sequenceNumber":[0-9]+`)

// Bytes returns the content of each object, byte for byte, except for counts of writes, the UID and
// creation time of an object that is Reborn, and the order of attributes in a Calico block: a
// restore puts them last.
func (s Store) Bytes() map[string]string {
	all := map[string]string{}
	for path, o := range s {
		all[path] = o.content()
	}
	return all
}

// content returns one object of Bytes.
func (o Object) content() string {
	fields, metadata := o.parts()
	delete(fields, "metadata")
	volatile := []string{"resourceVersion", "generation", "managedFields"}
	if o.Reborn {
		volatile = append(volatile, "uid", "creationTimestamp")
	}
	for name, value := range metadata {
		if !slices.Contains(volatile, name) {
			fields["metadata."+name] = value
		}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		lines = append(lines, name+": "+inOrder(fields[name]))
	}
	return strings.Join(lines, "\n")
}

// inOrder returns a value without its count of writes. In a Calico block, each allocation has its
// attribute instead of an index.
func inOrder(raw json.RawMessage) string {
	var fields map[string]json.RawMessage
	var block struct {
		Allocations []*int
		Attributes  []json.RawMessage
		Sequences   map[string]json.Number `json:"sequenceNumberForAllocation"`
	}
	if json.Unmarshal(raw, &fields) != nil || json.Unmarshal(raw, &block) != nil || fields["attributes"] == nil {
		return writeCount.ReplaceAllString(string(raw), "")
	}
	var lines []string
	for ordinal, index := range block.Allocations {
		if index != nil {
			lines = append(lines, fmt.Sprintf("%d: %s", ordinal, block.Attributes[*index]))
		}
	}
	lines = append(lines, fmt.Sprint(len(block.Attributes), " attributes, ", block.Sequences))
	for _, field := range []string{"allocations", "attributes", "sequenceNumber", "sequenceNumberForAllocation"} {
		delete(fields, field)
	}
	return strings.Join(append(lines, string(encode(fields))), "\n")
}

// Held returns who has what: each allocation of a pool or block by path, space and key, and each
// other object, as in Bytes, by path.
func (s Store) Held() map[string]string {
	all := map[string]string{}
	for path, o := range s {
		entries, ok := o.allocations()
		if !ok {
			all[path] = o.content()
		}
		for key, entry := range entries {
			all[path+" "+key] = entry
		}
	}
	return all
}

// Places is Held plus each Whereabouts pool without its allocations, by path.
func (s Store) Places() map[string]string {
	all := s.Held()
	for path, o := range s {
		if o.Resource != Pools {
			continue
		}
		fields, _ := o.parts()
		var spec map[string]json.RawMessage
		decode(fields["spec"], &spec)
		delete(spec, "allocations")
		fields["spec"] = encode(spec)
		o.Raw = encode(fields)
		all[path] = o.content()
	}
	return all
}

// allocations returns those of a pool or block, byte for byte, by key; false for an object without
// any.
func (o Object) allocations() (map[string]string, bool) {
	var content struct {
		Spec struct {
			Allocations json.RawMessage
			Attributes  []json.RawMessage
		}
	}
	decode(o.Raw, &content)
	allocations := content.Spec.Allocations
	if len(allocations) == 0 {
		return nil, false
	}
	all := map[string]string{}
	if allocations[0] == '{' {
		var entries map[string]json.RawMessage
		decode(allocations, &entries)
		for key, entry := range entries {
			all[key] = string(entry)
		}
		return all, true
	}
	var ordinals []*int
	decode(allocations, &ordinals)
	for ordinal, index := range ordinals {
		if index != nil {
			all[fmt.Sprint(ordinal)] = string(content.Spec.Attributes[*index])
		}
	}
	return all, true
}

// Owners returns who has Whereabouts' addresses: for an allocation, its pod and sandbox by the
// pool's name, a space and the address; for an overlapping-range reservation, its pod by the
// address.
func (s Store) Owners() map[string]string {
	all := map[string]string{}
	for _, o := range s {
		switch o.Resource {
		case Pools:
			var pool struct {
				Spec struct {
					Range       string
					Allocations map[string]struct{ ID, PodRef string }
				}
			}
			decode(o.Raw, &pool)
			for key, a := range pool.Spec.Allocations {
				all[o.Name+" "+Address(pool.Spec.Range, key)] = a.PodRef + " " + a.ID
			}
		case Reservations:
			var reservation struct{ Spec struct{ PodRef string } }
			decode(o.Raw, &reservation)
			all[o.Name] = reservation.Spec.PodRef
		}
	}
	return all
}

// Address returns the address that a key stands for in a pool of the range. It panics if the key or
// the range is invalid.
func Address(cidr, key string) string {
	offset, ok := new(big.Int).SetString(key, 10)
	if !ok {
		panic("key " + key)
	}
	base := netip.MustParsePrefix(cidr).Addr().AsSlice()
	ip, _ := netip.AddrFromSlice(offset.Add(offset, new(big.Int).SetBytes(base)).FillBytes(make([]byte, len(base))))
	return ip.String()
}

// Versions returns the resource version of each object.
func (s Store) Versions() map[string]string {
	all := map[string]string{}
	for path, o := range s {
		_, metadata := o.parts()
		all[path] = string(metadata["resourceVersion"])
	}
	return all
}

// parts takes an object and its metadata apart. Each part stays as written.
func (o Object) parts() (fields, metadata map[string]json.RawMessage) {
	decode(o.Raw, &fields)
	decode(fields["metadata"], &metadata)
	return fields, metadata
}

// decode panics on invalid JSON: the API server and the plugins write none.
func decode(raw json.RawMessage, into any) {
	if err := json.Unmarshal(raw, into); err != nil {
		panic(fmt.Errorf("decode %.60s: %w", raw, err))
	}
}

// encode is the reverse of decode.
func encode(fields map[string]json.RawMessage) json.RawMessage {
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err) // it was JSON
	}
	return raw
}
