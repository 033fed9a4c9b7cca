package main

import (
	"encoding/json"
	"net/netip"
	"strings"
)

// A form is how one of Calico's datastores stores its objects.
type form struct {
	part string // that measures it
	etcd bool

	// The prefixes of the keys in etcd.
	blocks, handles, affinities string
}

// crds is the prefix of Calico's custom resources.
const crds = "/registry/crd.projectcalico.org/"

// The forms.
var (
	inKubernetes = form{"calico", false, crds + "ipamblocks/", crds + "ipamhandles/", crds + "blockaffinities/"}
	inEtcd       = form{"calico-etcd", true, "/calico/ipam/v2/assignment/ipv4/block/", "/calico/ipam/v2/handle/", "/calico/ipam/v2/host/"}
)

// The kinds of UIDs.
const (
	blockUID byte = iota + 0x10
	handleUID
	affinityUID
	endpointUID
	nodeUID
)

func (f form) blockKey(b blockID) string {
	if f.etcd {
		return f.blocks + strings.ReplaceAll(b.cidr().String(), "/", "-")
	}
	return f.blocks + cidrName(b.cidr())
}

// cidrName spells a CIDR as in the names of custom resources.
func cidrName(cidr netip.Prefix) string {
	return strings.NewReplacer(".", "-", "/", "-").Replace(cidr.String())
}

func (f form) handleKey(e entry) string { return f.handles + e.given().Handle() }

// blockRecord returns a block with this content.
func (f form) blockRecord(b blockID, c blockContent) (record, error) {
	if !f.etcd {
		c.Strict = new(bool)
	}
	value, err := f.value("IPAMBlock", cidrName(b.cidr()), uid(blockUID, int(b)), c)
	return record{f.blockKey(b), value}, err
}

// handleRecord returns the handle of an entry.
func (f form) handleRecord(e entry) (record, error) {
	content := map[string]any{"block": map[string]int{e.block().cidr().String(): 1}, "deleted": false}
	id := e.given().Handle()
	if !f.etcd {
		content["handleID"] = id
	}
	value, err := f.value("IPAMHandle", id, uid(handleUID, int(e)), content)
	return record{f.handleKey(e), value}, err
}

// affinityRecord returns the affinity of a block to its node.
func (f form) affinityRecord(b blockID) (record, error) {
	if f.etcd {
		key := f.affinities + b.node() + "/ipv4/block/" + strings.ReplaceAll(b.cidr().String(), "/", "-")
		return record{key, []byte(`{"state":"confirmed","deleted":false}`)}, nil
	}
	name := b.node() + "-" + cidrName(b.cidr())
	value, err := f.value("BlockAffinity", name, uid(affinityUID, int(b)),
		map[string]any{"cidr": b.cidr(), "deleted": "false", "node": b.node(), "state": "confirmed"})
	return record{f.affinities + name, value}, err
}

// value returns the value that stores this content. In Kubernetes, that is JSON and a line feed.
func (f form) value(kind, name, uid string, content any) ([]byte, error) {
	data, err := json.Marshal(content)
	if err != nil || f.etcd {
		return data, err
	}
	const version = "crd.projectcalico.org/v1"
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	owned := map[string]any{".": struct{}{}}
	for field := range fields {
		owned["f:"+field] = struct{}{}
	}
	metadata := map[string]any{
		"annotations":       map[string]string{"projectcalico.org/metadata": `{"creationTimestamp":null}`},
		"creationTimestamp": created, "generation": 1, "name": name, "uid": uid,
		"managedFields": []any{map[string]any{
			"apiVersion": version, "fieldsType": "FieldsV1", "manager": "calico-ipam", "operation": "Update", "time": created,
			"fieldsV1": map[string]any{
				"f:metadata": map[string]any{"f:annotations": map[string]any{
					".": struct{}{}, "f:projectcalico.org/metadata": struct{}{},
				}},
				"f:spec": owned,
			},
		}},
	}
	data, err = json.Marshal(map[string]any{"apiVersion": version, "kind": kind, "metadata": metadata, "spec": fields})
	return append(data, '\n'), err
}

// content returns the content of a value.
func (f form) content(value []byte) ([]byte, error) {
	if f.etcd {
		return value, nil
	}
	var object struct{ Spec json.RawMessage }
	err := json.Unmarshal(value, &object)
	return object.Spec, err
}
