package calico

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/tidwall/gjson"
	kjson "sigs.k8s.io/json"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// An allocation is one that is to be put back, as it was recorded. What it says
// agrees with itself, though somebody may have edited it.
type allocation struct {
	record
	attribute attribute
	handle    handle // as it was; zero where there was none
}

// id is that of its handle, whether there was one or not; empty for none.
func (a allocation) id() string { return a.attribute.handle() }

// token is what the allocation had for a token.
func (a allocation) token() string {
	var sequence uint64
	if a.Sequence != nil {
		sequence = *a.Sequence
	}
	return tokenOf(sequence, []byte(a.Attribute))
}

// readRecord understands the record of an allocation of a block. It returns an
// error that names what is wrong with one that Record cannot have returned.
func readRecord(store datastore, pool string, r reaper.Record) (allocation, error) {
	var a allocation
	if err := decodeStrictly(r.Stored, &a.record); err != nil {
		return a, err
	}
	cidr, err := netip.ParsePrefix(pool)
	if err != nil || r.Pool != pool {
		return a, fmt.Errorf("its pool is %q, which is not block %q", r.Pool, pool)
	}
	hostBits := cidr.Addr().BitLen() - cidr.Bits()
	if hostBits > maxHostBits || a.Ordinal < 0 || a.Ordinal >= 1<<hostBits {
		return a, fmt.Errorf("ordinal %d is not in block %s", a.Ordinal, cidr)
	}
	if ip := (block{cidr: cidr}).address(a.Ordinal); r.IP != ip.String() || r.Key != strconv.Itoa(a.Ordinal) {
		return a, fmt.Errorf("ordinal %d is %s, and it says to be %q with key %q", a.Ordinal, ip, r.IP, r.Key)
	}
	if a.Index < 0 {
		return a, fmt.Errorf("index %d is negative", a.Index)
	}
	if whole := gjson.Parse(a.Attribute); !whole.IsObject() {
		return a, errors.New("its attribute is no JSON object")
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
		return a, fmt.Errorf("its attribute has handle %q, and its handle is %q", a.id(), a.handle.id)
	}
	return a, nil
}

// read understands a handle that was recorded, as one to be created.
func (r handleRecord) read(store datastore) (handle, error) {
	o, err := store.anew(handles, r.Name, []byte(r.Stored))
	if err != nil {
		return handle{}, fmt.Errorf("handle %q: %w", r.Name, err)
	}
	h, err := readHandle(o)
	if err != nil {
		return handle{}, fmt.Errorf("handle %q: %w", r.Name, err)
	}
	if name := store.name(handles, h.id); r.Name != name || o.name != name {
		return handle{}, fmt.Errorf("handle %q: it is named %q, and %q would have its ID", r.Name, o.name, name)
	}
	return h, nil
}

// alone returns the handle with so many addresses in the one block, and in no
// other, as it would be stored.
func (h handle) alone(cidr netip.Prefix, n int) (handle, error) {
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
	return only.counting(cidr, n)
}

// decodeStrictly decodes a record that says what it has to say, and once.
func decodeStrictly(data []byte, into any) error {
	wrong, err := kjson.UnmarshalStrict(data, into)
	if err := errors.Join(append(wrong, err)...); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}
