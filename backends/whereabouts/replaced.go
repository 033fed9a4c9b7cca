package whereabouts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A tombstone is the podref of an overlapping reservation while it is being
// released. No pod can have that name. So a pod that asks for the address sees a
// foreign owner, and takes another address. The annotation keeps the whole spec from
// before, which is put back if the owner turns out to be alive, or if the release is
// interrupted.
const (
	tombstone      = "_ip-reaper/_released"
	specAnnotation = "ip-reaper/spec"

	// ownerAnnotation kept the podref alone, in tombstones of earlier builds.
	ownerAnnotation = "ip-reaper/owner"
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

// replaced returns the spec that the tombstone of an object replaced. It returns an
// error if the object has no tombstone, or does not say whose it was: such a
// tombstone is left alone.
func replaced(o object) (json.RawMessage, error) {
	if !hasTombstone(o.Spec) {
		return nil, errors.New("it has no tombstone")
	}
	annotation := keptIn(o)
	spec := json.RawMessage(o.Metadata.Annotations[annotation])
	if annotation == ownerAnnotation {
		fields, err := objectOf(o.Spec)
		if err != nil {
			return nil, err
		}
		if fields["podref"], err = json.Marshal(o.Metadata.Annotations[ownerAnnotation]); err != nil {
			return nil, err
		}
		if spec, err = json.Marshal(fields); err != nil {
			return nil, err
		}
	}
	var s v1alpha1.OverlappingRangeIPReservationSpec
	if err := kube.Decode(spec, &s); err != nil || readOwner(s.PodRef).Namespace == "" || s.PodRef == tombstone {
		return nil, fmt.Errorf("its release has begun, and the annotation %s names no owner: set podref to namespace/name of the owner", annotation)
	}
	return spec, nil
}

// keptIn returns the annotation in which the tombstone of an object keeps what it
// replaced.
func keptIn(o object) string {
	if _, annotated := o.Metadata.Annotations[specAnnotation]; annotated {
		return specAnnotation
	}
	return ownerAnnotation
}

// specChange returns the JSON merge patch (RFC 7386) that turns one spec into the
// other.
func specChange(from, to json.RawMessage) (map[string]any, error) {
	x, errX := decodeExactly(from)
	y, errY := decodeExactly(to)
	have, isObject := x.(map[string]any)
	want, areObjects := y.(map[string]any)
	if err := errors.Join(errX, errY); err != nil || !isObject || !areObjects {
		return nil, fmt.Errorf("%s or %s is no spec: %w", from, to, err)
	}
	return mergePatch(have, want), nil
}

// mergePatch returns the patch of one object. A field that is not wanted becomes
// null.
func mergePatch(have, want map[string]any) map[string]any {
	patch := make(map[string]any)
	for name := range have {
		if _, wanted := want[name]; !wanted {
			patch[name] = nil
		}
	}
	for name, value := range want {
		inner, areObjects := value.(map[string]any)
		old, isObject := have[name].(map[string]any)
		switch {
		case reflect.DeepEqual(have[name], value):
		case isObject && areObjects:
			patch[name] = mergePatch(old, inner)
		default:
			patch[name] = value
		}
	}
	return patch
}
