package calico

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// ErrNotFound says that there is no object with that name.
var ErrNotFound = errors.New("not found")

// A Kind is a kind of object that Calico's IPAM keeps.
type Kind string

// The kinds, named as Kubernetes names the resources.
const (
	Block    Kind = "ipamblocks"
	Handle   Kind = "ipamhandles"
	Affinity Kind = "blockaffinities"

	pools Kind = "ippools"
)

// An Object is one object as it is stored.
type Object struct {
	Name     string // in the store: what BlockName, HandleName and AffinityName return
	Revision string // a different one after each write
	Content  string // JSON: the spec of the custom resource, or the value in etcd
	Raw      string // all of it, with any metadata
}

// A store gives direct access to either store, without Calico's programs. Names are the store's
// own; an unknown name is ErrNotFound.
type store interface {
	// BlockName, HandleName and AffinityName return where the programs keep the object. The names
	// of affinities are correct up to 252 characters.
	BlockName(cidr netip.Prefix) string
	HandleName(id string) string
	AffinityName(node string, cidr netip.Prefix) string

	// Get reads an object, and List reads all of a kind, by name.
	Get(ctx context.Context, kind Kind, name string) (Object, error)
	List(ctx context.Context, kind Kind) (map[string]Object, error)

	// Put creates an object with this JSON as its content, or replaces only the content of an
	// existing one. Delete deletes one.
	Put(ctx context.Context, kind Kind, name, content string) error
	Delete(ctx context.Context, kind Kind, name string) error

	// Versions returns the revision of each object that Calico stores, by name. If two calls return
	// the same, nothing was written between them.
	Versions(ctx context.Context) (map[string]string, error)

	// putResource writes an object other than a block, a handle or an affinity, as calicoctl would.
	putResource(ctx context.Context, plural, kind, name string, spec map[string]any) error
}

// Edit reads an object, lets edit change its decoded content, and writes it. Numbers are
// json.Number, so none loses a digit.
func (d *Datastore) Edit(ctx context.Context, kind Kind, name string, edit func(map[string]any)) error {
	o, err := d.Get(ctx, kind, name)
	if err != nil {
		return err
	}
	content, err := decode(o.Content)
	if err != nil {
		return fmt.Errorf("edit %s: %w", name, err)
	}
	edit(content)
	text, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("edit %s: %w", name, err)
	}
	return d.Put(ctx, kind, name, string(text))
}

// PutHandle writes a handle that says how many addresses it has in each block.
func (d *Datastore) PutHandle(ctx context.Context, id string, blocks map[netip.Prefix]int) error {
	content := map[string]any{"block": blocks, "deleted": false}
	if d.Etcd == nil {
		content["handleID"] = id
	}
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return d.Put(ctx, Handle, d.HandleName(id), string(text))
}

func decode(content string) (map[string]any, error) {
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewBufferString(content))
	decoder.UseNumber()
	return object, decoder.Decode(&object)
}

// cidrName spells a CIDR as in the names of custom resources.
func cidrName(cidr netip.Prefix) string {
	return strings.NewReplacer(".", "-", ":", "-", "/", "-").Replace(cidr.String())
}

func family(cidr netip.Prefix) string {
	if cidr.Addr().Is4() {
		return "ipv4"
	}
	return "ipv6"
}
