package calico

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/tidwall/gjson"
	kjson "sigs.k8s.io/json"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A record is an allocation as its block stored it. The stored parts are strings: a
// journal may write JSON with other spaces.
type record struct {
	Ordinal   int           `json:"ordinal"`
	Index     int           `json:"index"` // the index of the attribute in the block
	Attribute string        `json:"attribute"`
	Sequence  *uint64       `json:"sequence,omitzero"`
	Handle    *handleRecord `json:"handle,omitzero"` // absent if the allocation had no handle
}

// A handleRecord is a handle as it was stored: the whole resource, or the value of
// a key. It is also the whole record of a handle without an address.
type handleRecord struct {
	Name   string `json:"name"` // the name of the resource, or the key in etcd
	Stored string `json:"stored"`
}

// A recordedAllocation is the decoded record of an allocation that is to be put
// back. Its parts agree with each other: readRecord checks that, since a journal
// may have been edited.
type recordedAllocation struct {
	record
	attribute attribute
	handle    handle // as it was recorded; zero if there was none
}

// id returns the ID of its handle, whether the handle existed or not; empty for
// none.
func (a recordedAllocation) id() string { return a.attribute.handle() }

// token returns the token that the allocation had.
func (a recordedAllocation) token() string {
	var sequence uint64
	if a.Sequence != nil {
		sequence = *a.Sequence
	}
	return tokenOf(sequence, []byte(a.Attribute))
}

// readRecord decodes the record of an allocation of a block. It returns an error
// that says what is wrong with a record that Record cannot have returned.
func readRecord(store datastore, pool string, r ipam.Record) (recordedAllocation, error) {
	var a recordedAllocation
	if err := decodeStrictly(r.Stored, &a.record); err != nil {
		return a, err
	}
	cidr, err := netip.ParsePrefix(pool)
	if err != nil || r.Pool != pool {
		return a, fmt.Errorf("its pool is %q, and not block %q", r.Pool, pool)
	}
	hostBits := cidr.Addr().BitLen() - cidr.Bits()
	if hostBits > maxHostBits || a.Ordinal < 0 || a.Ordinal >= 1<<hostBits {
		return a, fmt.Errorf("ordinal %d is not in block %s", a.Ordinal, cidr)
	}
	if ip := (block{cidr: cidr}).address(a.Ordinal); r.IP != ip.String() || r.Key != strconv.Itoa(a.Ordinal) {
		return a, fmt.Errorf("ordinal %d is %s, and the record has the address %q with key %q", a.Ordinal, ip, r.IP, r.Key)
	}
	if a.Index < 0 {
		return a, fmt.Errorf("index %d is negative", a.Index)
	}
	if whole := gjson.Parse(a.Attribute); !whole.IsObject() {
		return a, errors.New("its attribute is not a JSON object")
	}
	if err := (object{raw: []byte(a.Attribute)}).unambiguous(); err != nil {
		return a, fmt.Errorf("attribute: %w", err)
	}
	if err := kube.Decode([]byte(a.Attribute), &a.attribute); err != nil {
		return a, fmt.Errorf("attribute: %w", err)
	}
	if a.Handle == nil {
		return a, nil
	}
	if a.handle, err = a.Handle.read(store); err != nil {
		return a, err
	}
	if a.handle.id != a.id() {
		return a, fmt.Errorf("its attribute names handle %q, and its handle is %q", a.id(), a.handle.id)
	}
	return a, nil
}

// read decodes a recorded handle, as one to be created.
func (r handleRecord) read(store datastore) (handle, error) {
	o, err := store.newObject(handles, r.Name, []byte(r.Stored))
	if err != nil {
		return handle{}, fmt.Errorf("handle %q: %w", r.Name, err)
	}
	h, err := readHandle(o)
	if err != nil {
		return handle{}, fmt.Errorf("handle %q: %w", r.Name, err)
	}
	if name := store.name(handles, h.id); r.Name != name || o.name != name {
		return handle{}, fmt.Errorf("handle %q: the object is named %q, and the name for its ID is %q", r.Name, o.name, name)
	}
	return h, nil
}

// onlyIn returns the handle with n addresses in the one block and none in any
// other, in the form that is to be stored.
func (h handle) onlyIn(cidr netip.Prefix, n int) (handle, error) {
	only := h
	only.counts = make(map[netip.Prefix]int)
	if err := only.set("block", []byte("{}")); err != nil {
		return handle{}, err
	}
	if h.deleted {
		if err := only.set("deleted", []byte("false")); err != nil {
			return handle{}, err
		}
		only.deleted = false
	}
	return only.withCount(cidr, n)
}

// decodeStrictly decodes a record. It returns an error if a field is unknown or
// stands in it twice.
func decodeStrictly(data []byte, into any) error {
	wrong, err := kjson.UnmarshalStrict(data, into)
	if err := errors.Join(append(wrong, err)...); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}
