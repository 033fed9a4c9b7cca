package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// created is when all objects were created.
var created = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// A record is an object in etcd.
type record struct {
	key   string
	value []byte
}

// builtin encodes a built-in object as the API server stores it: protobuf in an envelope that names
// the kind. The object must have its TypeMeta and no resourceVersion.
func builtin(object runtime.Object) ([]byte, error) {
	var out bytes.Buffer
	err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &out)
	return out.Bytes(), err
}

// custom encodes a Whereabouts resource as the API server stores it: JSON and a line feed.
func custom(kind, name, uid string, spec any) ([]byte, error) {
	version := v1alpha1.SchemeGroupVersion.String()
	data, err := json.Marshal(map[string]any{
		"apiVersion": version, "kind": kind, "spec": spec,
		"metadata": map[string]any{
			"creationTimestamp": created, "generation": 1, "name": name, "namespace": cluster.PoolNamespace, "uid": uid,
			"managedFields": []any{map[string]any{
				"apiVersion": version, "fieldsType": "FieldsV1", "manager": "whereabouts", "operation": "Update",
				"time": created, "fieldsV1": map[string]any{"f:spec": map[string]any{".": map[string]any{}}},
			}},
		},
	})
	return append(data, '\n'), err
}

// The prefixes of Whereabouts' custom resources.
const (
	poolPrefix        = "/registry/whereabouts.cni.cncf.io/ippools/" + cluster.PoolNamespace + "/"
	reservationPrefix = "/registry/whereabouts.cni.cncf.io/overlappingrangeipreservations/" + cluster.PoolNamespace + "/"
)

// poolRecord returns an IPPool with its entries, live and stale.
func (s size) poolRecord(pool int) (record, error) {
	spec := v1alpha1.IPPoolSpec{Range: poolRange(pool).String(), Allocations: map[string]v1alpha1.IPAllocation{}}
	for e := entry(pool * poolEntries); e < entry(min((pool+1)*poolEntries, s.total())); e++ {
		spec.Allocations[strconv.Itoa(e.offset())] = v1alpha1.IPAllocation{
			ContainerID: e.sandbox(), PodRef: e.podRef(), IfName: "net1",
		}
	}
	value, err := custom("IPPool", poolName(pool), uid(1, pool), spec)
	return record{poolPrefix + poolName(pool), value}, err
}

// reservationRecord returns an overlapping reservation.
func reservationRecord(e entry) (record, error) {
	value, err := custom("OverlappingRangeIPReservation", e.ip().String(), uid(2, int(e)), v1alpha1.OverlappingRangeIPReservationSpec{
		ContainerID: e.sandbox(), PodRef: e.podRef(), IfName: "net1",
	})
	if err != nil {
		return record{}, fmt.Errorf("encode overlapping reservation %s: %w", e.ip(), err)
	}
	return record{reservationPrefix + e.ip().String(), value}, nil
}
