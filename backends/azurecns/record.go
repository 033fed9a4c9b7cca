package azurecns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A record is the Stored of an ipam.Record.
type record struct {
	// Address is the address as CNS showed it.
	Address json.RawMessage `json:"address"`

	// Interfaces are from CNS's record of the container, by name; none if CNS keeps no such
	// record.
	Interfaces map[string]json.RawMessage `json:"interfaces,omitempty"`
}

// Record implements ipam.Backend.
func (b *Backend) Record(ctx context.Context, as []ipam.Allocation) ([]json.RawMessage, error) {
	s, err := b.cns.state(ctx)
	if err != nil {
		return nil, err
	}
	stored := make([]json.RawMessage, len(as))
	endpoints := make(map[string]map[string]json.RawMessage) // by container
	for i, listed := range as {
		a := s.byIP[listed.IP]
		if a == nil || a.held() || s.token(a) != listed.Token {
			continue
		}
		interfaces, asked := endpoints[a.container]
		if !asked && a.Owner.Scheme == schemeContainer {
			if interfaces, err = b.cns.endpoint(ctx, a.container); err != nil {
				return nil, err
			}
			endpoints[a.container] = interfaces
		}
		if stored[i], err = json.Marshal(record{a.raw, interfaces}); err != nil {
			return nil, err
		}
	}
	return stored, nil
}

// A recorded is a decoded record.
type recorded struct {
	*address
	interfaces map[string]json.RawMessage // those that CNS accepts again
}

// readRecord decodes a record. It returns an error for one that Record cannot have returned.
func readRecord(r ipam.Record) (recorded, error) {
	var k record
	if err := kube.Decode(r.Stored, &k); err != nil {
		return recorded{}, fmt.Errorf("decode the record: %w", err)
	}
	var id struct {
		ID string `json:"ID"`
	}
	if err := kube.Decode(k.Address, &id); err != nil {
		return recorded{}, fmt.Errorf("decode the address of the record: %w", err)
	}
	a := readAddress(id.ID, k.Address)
	switch {
	case a.unreadable != "":
		return recorded{}, errors.New("the record has an address that cannot be read: " + a.unreadable)
	case a.State != assigned:
		return recorded{}, fmt.Errorf("the record is of an address in the state %q", a.State)
	case a.ip.String() != r.IP || r.Key != r.IP:
		return recorded{}, fmt.Errorf("the record is of %s, and its content of %s", r.IP, a.ip)
	}
	interfaces := make(map[string]json.RawMessage)
	for name, raw := range k.Interfaces {
		var d device
		if err := kube.Decode(raw, &d); err != nil {
			return recorded{}, fmt.Errorf("decode the interface %q of the record: %w", name, err)
		}
		if name != "" && d != (device{}) { // CNS refuses others
			interfaces[name] = raw
		}
	}
	return recorded{a, interfaces}, nil
}
