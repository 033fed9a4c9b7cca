package state

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A Dump is a cluster read from files: pods, virtual machines, StatefulSets and nodes. It
// implements census.Cluster, but Pod always fails, because a second look at a file proves
// nothing. The zero Dump is ready to use.
type Dump struct {
	pods []census.Pod

	asking []report.Asking // the pods that wait for an address
	sets   []census.StatefulSet

	nodes    []census.Node
	machines []census.VirtualMachine
	lists    int // lists that may be lists of pods
	others   int // objects that are not pods
}

// Take adds a pod, a running virtual machine, a StatefulSet, a node, or a list that may be of
// pods. It returns false for any other document.
func (d *Dump) Take(doc ipam.Document) (bool, error) {
	switch {
	case doc.List && doc.More:
		return false, fmt.Errorf("%s is only a part of a list: dump the whole list", doc.Place)
	case doc.Is("", "List"), doc.Is("", "PodList"):
		d.lists++
		return true, nil
	case doc.Is("", "Pod"):
		var pod corev1.Pod
		if err := decodeNamed(doc, &pod); err != nil {
			return false, fmt.Errorf("%s: pod: %w", doc.Place, err)
		}
		read := readPod(&pod)
		d.pods = append(d.pods, read)
		if a := readAsking(&pod, read); a.Waits {
			d.asking = append(d.asking, a)
		}
		return true, nil
	}
	d.others++
	switch {
	case doc.Is("apps", "StatefulSet"):
		var set appsv1.StatefulSet
		if err := decodeNamed(doc, &set); err != nil {
			return false, fmt.Errorf("%s: StatefulSet: %w", doc.Place, err)
		}
		d.sets = append(d.sets, readStatefulSet(&set))
	case doc.Is("", "Node"):
		var node corev1.Node
		if err := decodeNamed(doc, &node); err != nil {
			return false, fmt.Errorf("%s: node: %w", doc.Place, err)
		}
		d.nodes = append(d.nodes, readNode(&node))
	case doc.Is(machineGroup, machineKind):
		d.machines = append(d.machines, readMachine(doc.Data))
	default:
		return false, nil
	}
	return true, nil
}

// decodeNamed decodes an object and checks that it has a name.
func decodeNamed(doc ipam.Document, into interface{ GetName() string }) error {
	if err := kube.Decode(doc.Data, into); err != nil {
		return err
	}
	if into.GetName() == "" {
		return errors.New("the object has no name")
	}
	return nil
}

// Check returns an error unless there are pods, or only an empty list, as from a cluster
// without pods.
func (d *Dump) Check() error {
	if len(d.pods) == 0 && (d.lists == 0 || d.others > 0) {
		return errors.New("the file has no pods")
	}
	return nil
}

// Pods implements census.Cluster.
func (d *Dump) Pods(context.Context) ([]census.Pod, error) { return d.pods, nil }

// StatefulSets implements census.Cluster.
func (d *Dump) StatefulSets(context.Context) ([]census.StatefulSet, error) { return d.sets, nil }

// VirtualMachines implements census.Cluster.
func (d *Dump) VirtualMachines(context.Context) ([]census.VirtualMachine, error) {
	return d.machines, nil
}

// Nodes implements census.Cluster.
func (d *Dump) Nodes(context.Context) ([]census.Node, error) { return d.nodes, nil }

// Pod implements census.Cluster.
func (d *Dump) Pod(context.Context, ipam.PodRef) (census.Pod, census.Presence, error) {
	return census.Pod{}, census.Unknown, errors.New("a pod in a file cannot be looked up again")
}
