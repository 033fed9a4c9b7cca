package calico

import "strings"

// The keys and prefixes of Calico's objects in etcd (libcalico-go's backend/model).
const (
	etcdRoot       = "/calico/"
	blockPrefix    = "/calico/ipam/v2/assignment/"
	handlePrefix   = "/calico/ipam/v2/handle/"
	resourcePrefix = "/calico/resources/v3/projectcalico.org/"
	clusterKey     = resourcePrefix + "clusterinformations/default"
)

// etcdKey returns the key of a block by its CIDR, or of a handle by its ID.
func etcdKey(k kind, id string) string {
	if k == handles {
		return handlePrefix + id
	}
	family := "ipv4"
	if strings.Contains(id, ":") {
		family = "ipv6"
	}
	return blockPrefix + family + "/block/" + strings.ReplaceAll(id, "/", "-")
}

// resourceName returns the name of the resource of a block, by its CIDR, or of a
// handle, by its ID. The names of blocks are unique. Handles whose IDs differ only
// in case share one name.
func resourceName(k kind, id string) string {
	if k == blocks {
		return strings.NewReplacer(".", "-", ":", "-", "/", "-").Replace(id)
	}
	return strings.ToLower(id)
}
