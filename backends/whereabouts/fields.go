package whereabouts

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// claimField is the field that names the IPAMClaim to which an address belongs
// (Whereabouts pull request 742).
const claimField = "ipamclaimref"

// The fields that this program knows: of an entry of spec.allocations, and of the
// spec of an overlapping reservation.
var (
	entryFields       = []string{"id", "podref", "ifname", claimField}
	overlappingFields = []string{"podref", "containerid", "ifname", claimField}
)

// unknownField returns the path of a field that is not among the known ones: the
// first by name of the object that is stored at a path. It returns an empty string
// if there is none, and for a value that is no object, which cannot be decoded
// either.
func unknownField(stored json.RawMessage, at string, known []string) string {
	var fields map[string]json.RawMessage
	if err := kube.Decode(stored, &fields); err != nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			return at + "." + name
		}
	}
	return ""
}
