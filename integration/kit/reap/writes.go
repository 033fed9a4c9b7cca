package reap

import (
	"maps"
	"strings"
)

// StoreWrites returns the writes, by "verb resource", except a run's own: its lock, ledger and
// journal.
func StoreWrites(writes map[string]int) map[string]int {
	left := maps.Clone(writes)
	for _, own := range []string{
		"create leases", "update leases", "create configmaps", "update configmaps", "delete configmaps",
	} {
		delete(left, own)
	}
	return left
}

// StoreObjects returns the objects, by resource and name as in cluster.Versions, except a run's
// own.
func StoreObjects(objects map[string]string) map[string]string {
	left := maps.Clone(objects)
	maps.DeleteFunc(left, func(key, _ string) bool {
		resource, name, _ := strings.Cut(key, "/")
		resource, _, _ = strings.Cut(resource, ".")
		return resource == "leases" || resource == "configmaps" && strings.Contains(name, "/ip-reaper-")
	})
	return left
}
