package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// dumpedFields are the fields by which a run judges the objects of a cluster, and explains a pod that
// hangs. Nothing else of them gets into a dump: pods and virtual machines have secrets in their other fields.
var dumpedFields = map[string][]string{
	"Pod":         {"spec.nodeName", "spec.hostNetwork", "spec.terminationGracePeriodSeconds", "status.phase", "status.startTime", "status.conditions", "status.podIP", "status.podIPs"},
	"StatefulSet": {"spec.replicas", "spec.ordinals"},
	"Node":        {"spec.taints", "status.addresses", "status.conditions", "status.nodeInfo"},
	"Namespace":   nil,
	"Event":       {"involvedObject", "type", "reason", "message", "firstTimestamp", "lastTimestamp", "eventTime", "count", "series"},
	machineKind:   {"status.phase", "status.conditions", "status.interfaces"},
}

// dumpedMeta are the fields of the metadata of such an object that get into a dump, and dumpedKeys
// the annotations and labels.
var (
	dumpedMeta = []string{"namespace", "name", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers"}
	dumpedKeys = slices.Concat([]string{
		networkStatus, networksStatus, networks, defaultNetwork, calicoPodIP, calicoPodIPs, calicoContainerID, fixedAddresses, ipv4Pools, ipv6Pools, mirror, corev1.LabelHostname,
	}, tunnelAnnotations)
)

// Dumped returns what a dump has of an object; nil if it has nothing. The kind is that of the list;
// it is empty if the object names its own. The objects of stores are dumped whole, but for what
// kubectl and the API server remember about writers.
func Dumped(kind string, object json.RawMessage) json.RawMessage {
	var whole unstructured.Unstructured
	if err := kube.Decode(object, &whole.Object); err != nil {
		return object // inspect says what is wrong with it
	}
	if kind == "" {
		kind = whole.GetKind()
	}
	part := whole.Object
	if fields, ofCluster := dumpedFields[kind]; ofCluster {
		part = make(map[string]any)
		for _, path := range fields {
			copyField(part, whole.Object, strings.Split(path, ".")...)
		}
		for _, field := range dumpedMeta {
			copyField(part, whole.Object, "metadata", field)
		}
		for _, key := range dumpedKeys {
			copyField(part, whole.Object, "metadata", "annotations", key)
			copyField(part, whole.Object, "metadata", "labels", key)
		}
		copyField(part, whole.Object, "apiVersion")
		copyField(part, whole.Object, "kind")
	}
	unstructured.RemoveNestedField(part, "metadata", "managedFields")
	unstructured.RemoveNestedField(part, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	text, _ := json.Marshal(part) // it was read as JSON
	return text
}

// Reduce returns what a dump has of a document. It reports whether that is an object by which a run judges a
// cluster, and then also checks that it can be decoded, and has a name.
func Reduce(doc ipam.Document) (data []byte, ofCluster bool, err error) {
	var object interface{ GetName() string }
	what := ""
	switch {
	case doc.Is("", "Pod"):
		object, what = new(corev1.Pod), "pod"
	case doc.Is("", "Node"):
		object, what = new(corev1.Node), "node"
	case doc.Is("apps", "StatefulSet"):
		object, what = new(appsv1.StatefulSet), "StatefulSet"
	case doc.Is("", "Namespace"):
		object, what = new(corev1.Namespace), "namespace"
	case doc.Is("", "Event"):
		object, what = new(corev1.Event), "event"
	case doc.Is(machineGroup, machineKind):
		return Dumped(doc.Kind, doc.Data), true, nil
	default:
		return doc.Data, doc.Is("", "List") || doc.Is("", "PodList"), nil
	}
	err = kube.Decode(doc.Data, object)
	if err == nil && object.GetName() == "" {
		err = errors.New("the object has no name")
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s: %s: %w", doc.Place, what, err)
	}
	return Dumped(doc.Kind, doc.Data), true, nil
}

// copyField copies a field if there is one.
func copyField(to, from map[string]any, path ...string) {
	if value, found, err := unstructured.NestedFieldNoCopy(from, path...); found && err == nil {
		_ = unstructured.SetNestedField(to, value, path...) // its parents are maps
	}
}
