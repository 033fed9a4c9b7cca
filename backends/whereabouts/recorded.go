package whereabouts

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A recorded allocation is the object that Overlapping.Restore makes.
type recorded struct {
	body  json.RawMessage
	spec  json.RawMessage // of it
	owner reaper.PodRef
}

// serverOwned are the fields of an object's metadata that the API server fills
// in. Its ownerReferences are not among them: they name their owners by UID, so
// that the object stays for as long as it would have stayed.
var serverOwned = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "managedFields", "selfLink",
}

// readRecorded understands a record, and refuses what Record cannot have returned
// of an entry that was released. What had a tombstone gets its owner back.
func readRecorded(r reaper.Record) (recorded, error) {
	var o object
	if err := kube.Decode(r.Stored, &o); err != nil {
		return recorded{}, fmt.Errorf("the stored object: %w", err)
	}
	entry := overlappingPool(o, nil).Allocations[0] // which reads no pools: the record says the address
	if err := checkOverlapping(r, o, entry.Owner.Pod); err != nil {
		return recorded{}, err
	}
	fields, err := objectOf(r.Stored)
	if err != nil {
		return recorded{}, err
	}
	metadata, err := objectOf(fields["metadata"])
	if err != nil {
		return recorded{}, err
	}
	for _, name := range serverOwned {
		delete(metadata, name)
	}
	if entry.Interrupted {
		if err := dropTombstone(metadata, fields, entry.Owner.Pod); err != nil {
			return recorded{}, err
		}
	}
	if fields["metadata"], err = json.Marshal(metadata); err != nil {
		return recorded{}, err
	}
	body, err := json.Marshal(fields)
	return recorded{body, fields["spec"], entry.Owner.Pod}, err
}

// checkReservation refuses what is not the object of the record, and what names
// no pod.
func checkOverlapping(r reaper.Record, o object, owner reaper.PodRef) error {
	var kind struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := kube.Decode(r.Stored, &kind); err != nil {
		return fmt.Errorf("the stored object: %w", err)
	}
	named := slices.ContainsFunc(readings(o.Metadata.Name), func(n reading) bool { return n.ip.String() == r.IP })
	switch {
	case kind.APIVersion != v1alpha1.SchemeGroupVersion.String() || kind.Kind != overlappingKind:
		return fmt.Errorf("the stored object is of kind %q of %q", kind.Kind, kind.APIVersion)
	case o.pool() != r.Pool || o.Metadata.Name != r.Key:
		return fmt.Errorf("the stored object is %s", o.pool())
	case !named:
		return fmt.Errorf("%q is not the address that the name stands for", r.IP)
	case owner.Namespace == "":
		return errors.New("the stored object names no pod")
	}
	return nil
}

// dropTombstone names the owner in the spec again, and takes it out of the
// annotations.
func dropTombstone(metadata, fields map[string]json.RawMessage, owner reaper.PodRef) error {
	spec, err := objectOf(fields["spec"])
	if err != nil {
		return err
	}
	annotations, err := objectOf(metadata["annotations"])
	if err != nil {
		return err
	}
	if spec["podref"], err = json.Marshal(owner.String()); err != nil {
		return err
	}
	if fields["spec"], err = json.Marshal(spec); err != nil {
		return err
	}
	delete(annotations, ownerAnnotation)
	if len(annotations) == 0 {
		delete(metadata, "annotations")
		return nil
	}
	metadata["annotations"], err = json.Marshal(annotations)
	return err
}

// objectOf takes a JSON object apart. Each field stays as it is written.
func objectOf(data json.RawMessage) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := kube.Decode(data, &fields); err != nil {
		return nil, fmt.Errorf("the stored object: %w", err)
	}
	return fields, nil
}
