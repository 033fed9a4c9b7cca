package whereabouts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A tombstone is the podref of an overlapping reservation while it is being released. No pod
// can have that name. So a pod that asks for the address sees a foreign owner and takes another
// address. The annotation keeps the whole old spec, which is put back if the owner turns out to
// be alive or the release is interrupted.
const (
	tombstone      = "_ip-reaper/_released"
	specAnnotation = "ip-reaper/spec"
)

// hasTombstone reports whether the spec of an overlapping reservation has a
// tombstone.
func hasTombstone(spec json.RawMessage) bool {
	if !bytes.Contains(spec, []byte(tombstone)) && !bytes.ContainsRune(spec, '\\') {
		return false // as almost always
	}
	var s v1alpha1.OverlappingRangeIPReservationSpec
	return kube.Decode(spec, &s) == nil && s.PodRef == tombstone
}

// replaced returns the spec that the tombstone of an object replaced. It returns an error if
// the object has no tombstone, or does not say whose it was: then the tombstone is left alone.
func replaced(o object) (json.RawMessage, error) {
	if !hasTombstone(o.Spec) {
		return nil, errors.New("it has no tombstone")
	}
	spec := json.RawMessage(o.Metadata.Annotations[specAnnotation])
	var s v1alpha1.OverlappingRangeIPReservationSpec
	if err := kube.Decode(spec, &s); err != nil || readOwner(s.PodRef).Namespace == "" || s.PodRef == tombstone {
		return nil, fmt.Errorf("its release has begun, and the annotation %s names no owner: set podref to namespace/name of the owner", specAnnotation)
	}
	return spec, nil
}
