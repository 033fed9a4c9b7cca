package whereabouts

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A recorded is the object that Overlapping.Restore creates.
type recorded struct {
	body json.RawMessage
	spec json.RawMessage // the object's spec
	name reading         // the one that has the record's address

	inUse bool // see ipam.Record
}

// readRecorded decodes a record, and replaces a tombstone with the old spec. It returns an
// error for a record that Record cannot have returned for a released object.
func readRecorded(r ipam.Record) (recorded, error) {
	var o object
	var fields map[string]any
	if err := cmp.Or(kube.Decode(r.Stored, &o), kube.Decode(r.Stored, &fields)); err != nil {
		return recorded{}, fmt.Errorf("the stored object: %w", err)
	}
	listed := unnamedPool(o).Allocations[0]
	names := readings(o.Metadata.Name)
	named := slices.IndexFunc(names, func(n reading) bool { return n.ip.String() == r.IP })
	switch {
	case o.pool() != r.Pool || o.Metadata.Name != r.Key:
		return recorded{}, fmt.Errorf("the stored object is %s, not the one of the record", o.pool())
	case named < 0:
		return recorded{}, fmt.Errorf("the address %q of the record is not the one in the object's name", r.IP)
	case listed.Owner.Pod.Namespace == "":
		return recorded{}, errors.New("the stored object names no pod")
	}
	kube.RemoveServerMetadata(fields)
	spec := o.Spec
	if listed.Interrupted {
		spec, _ = replaced(o) // else it would not be interrupted
		unstructured.RemoveNestedField(fields, "metadata", "annotations", specAnnotation)
	}
	fields["spec"] = spec
	body, err := json.Marshal(fields)
	return recorded{body, spec, names[named], r.InUse}, err
}
