package whereabouts

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A recorded is the object that Overlapping.Restore creates.
type recorded struct {
	body json.RawMessage
	spec json.RawMessage // the object's spec
}

// serverOwned are the metadata fields that the API server fills in. The
// ownerReferences are not among them: they name their owners by UID, so that the
// object lives as long as it would have lived.
var serverOwned = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "managedFields", "selfLink",
}

// readRecorded decodes a record. It returns an error for a record that Record
// cannot have returned of a released object. It puts the old spec back in place of a
// tombstone.
func readRecorded(r ipam.Record) (recorded, error) {
	var o object
	if err := kube.Decode(r.Stored, &o); err != nil {
		return recorded{}, fmt.Errorf("the stored object: %w", err)
	}
	entry := overlappingPool(o, nil).Allocations[0] // without pools: the record has the address
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
		if fields["spec"], err = replaced(o); err != nil {
			return recorded{}, err
		}
		if err := dropAnnotation(metadata, specAnnotation); err != nil {
			return recorded{}, err
		}
	}
	if fields["metadata"], err = json.Marshal(metadata); err != nil {
		return recorded{}, err
	}
	body, err := json.Marshal(fields)
	return recorded{body, fields["spec"]}, err
}

// checkOverlapping returns an error if the object is not the one of the record, or
// names no pod.
func checkOverlapping(r ipam.Record, o object, owner ipam.PodRef) error {
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
		return fmt.Errorf("the stored object is %s, not the one of the record", o.pool())
	case !named:
		return fmt.Errorf("the address %q of the record is not the one in the object's name", r.IP)
	case owner.Namespace == "":
		return errors.New("the stored object names no pod")
	}
	return nil
}

// dropAnnotation removes an annotation. It leaves no empty list of annotations.
func dropAnnotation(metadata map[string]json.RawMessage, name string) error {
	annotations, err := objectOf(metadata["annotations"])
	if err != nil {
		return err
	}
	delete(annotations, name)
	if len(annotations) == 0 {
		delete(metadata, "annotations")
		return nil
	}
	metadata["annotations"], err = json.Marshal(annotations)
	return err
}

// objectOf splits a JSON object into its fields. Each field stays as it is written.
func objectOf(data json.RawMessage) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := kube.Decode(data, &fields); err != nil {
		return nil, fmt.Errorf("the stored object: %w", err)
	}
	return fields, nil
}
