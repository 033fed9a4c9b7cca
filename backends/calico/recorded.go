package calico

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	kjson "sigs.k8s.io/json"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A record is an allocation as its block stored it. The stored parts are strings:
// a journal may space JSON differently.
type record struct {
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

// A recordedAllocation is the decoded record of an allocation to be put back. Its
// parts agree with each other: readRecord checks that, since a journal may have
// been edited.
type recordedAllocation struct {
	record
	index     int // of the record in the call
	ordinal   int
	attribute attribute
	handle    handle // as it was recorded; zero if there was none
}

// id returns the ID of its handle, whether or not the handle existed; empty if it
// has none.
func (a recordedAllocation) id() string { return a.attribute.handle() }

// token returns the token that the allocation had.
func (a recordedAllocation) token() string {
	var sequence uint64
	if a.Sequence != nil {
		sequence = *a.Sequence
	}
	return tokenOf(sequence, []byte(a.Attribute))
}

// readRecord decodes the record of an allocation of the block. It returns an error
// that says what is wrong with a record that Record cannot have returned.
func readRecord(store datastore, of block, r ipam.Record) (recordedAllocation, error) {
	var a recordedAllocation
	err := decodeStrictly(r.Stored, &a.record)
	if err != nil {
		return a, err
	}
	if a.ordinal, err = of.ordinal(r.Key); err != nil {
		return a, err
	}
	if ip := of.address(a.ordinal); r.Pool != of.cidr.String() || r.IP != ip.String() || r.Key != strconv.Itoa(a.ordinal) {
		return a, fmt.Errorf("key %q of block %s is %s, and the record is of %q in pool %q", r.Key, of.cidr, ip, r.IP, r.Pool)
	}
	if !gjson.Parse(a.Attribute).IsObject() {
		return a, errors.New("its attribute is not a JSON object")
	}
	if err := (object{raw: []byte(a.Attribute)}).unambiguous(); err != nil {
		return a, fmt.Errorf("attribute: %w", err)
	}
	if err := kube.Decode([]byte(a.Attribute), &a.attribute); err != nil {
		return a, fmt.Errorf("attribute: %w", err)
	}
	if owner := a.attribute.foreign(); owner != "" {
		return a, fmt.Errorf("its attribute is that of %s, and a run releases no such address", owner)
	}
	if a.Handle == nil {
		return a, nil
	}
	if a.handle, err = a.Handle.read(store); err == nil && a.handle.id != a.id() {
		err = fmt.Errorf("its attribute names handle %q, and its handle is %q", a.id(), a.handle.id)
	}
	return a, err
}

// read decodes a recorded handle as one to be created.
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
	return h, h.checkNew()
}

// sandboxHandle is the form <network>.<sandbox> of a handle's ID, as the CNI names both. Calico v2
// wrote <namespace>.<pod>.
var sandboxHandle = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*[.][a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

// checkNew returns an error unless Calico could have written the handle for a pod, in blocks of its
// own sizes. A key that is no CIDR would make each calico-ipam DEL of the pod panic, and a handle
// of a node's tunnel would be taken for the tunnel's.
func (h handle) checkNew() error {
	if owner := foreignHandle(strings.ToLower(h.id)); owner != "" {
		return fmt.Errorf("handle %q is that of %s, and a run releases no such handle", h.id, owner)
	}
	if !sandboxHandle.MatchString(h.id) {
		return fmt.Errorf("handle %q has not the form <network>.<sandbox>", h.id)
	}
	for cidr := range h.counts {
		if cidr != cidr.Masked() || cidr.Addr().BitLen()-cidr.Bits() > maxCalicoBits {
			return fmt.Errorf("handle %q: block: %s is not the CIDR of a block", h.id, cidr)
		}
	}
	return nil
}

// maxCalicoBits is how many host bits Calico's largest block has (validation of spec.blockSize: /20
// and /116).
const maxCalicoBits = 12

// onlyIn returns the handle with n addresses in one block and none in any other,
// in the form to be stored.
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
// appears twice.
func decodeStrictly(data []byte, into any) error {
	wrong, err := kjson.UnmarshalStrict(data, into)
	if err := errors.Join(append(wrong, err)...); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}
