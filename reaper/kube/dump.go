package kube

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A Dump is a cluster as files have it: the pods and, beside them, StatefulSets
// and nodes. It implements reaper.Cluster. Nobody can look again, so it knows of
// no single pod whether it is there. The zero Dump is ready for use.
type Dump struct {
	pods []reaper.Pod
	sets []reaper.StatefulSet

	nodes  []reaper.Node
	lists  int // that may be of pods
	others int // objects that are no pods
}

// Take adds a document, reduced to what verdicts need. It reports false for one
// that is of no interest here.
func (d *Dump) Take(doc reaper.Document) (bool, error) {
	switch {
	case doc.List && doc.More:
		return false, fmt.Errorf("%s is one page of a list, and what is in the others is missing", doc.Place)
	case doc.Is("", "List"), doc.Is("", "PodList"):
		d.lists++
		return true, nil
	case doc.Is("", "Pod"):
		var pod corev1.Pod
		if err := decodeNamed(doc, &pod); err != nil {
			return false, fmt.Errorf("%s: pod: %w", doc.Place, err)
		}
		d.pods = append(d.pods, readPod(&pod))
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
	default:
		return false, nil
	}
	return true, nil
}

// decodeNamed reads an object, which must have a name.
func decodeNamed(doc reaper.Document, into interface{ GetName() string }) error {
	if err := Decode(doc.Data, into); err != nil {
		return err
	}
	if into.GetName() == "" {
		return errors.New("it has no name")
	}
	return nil
}

// Check returns an error where nothing that was taken is a list of pods. One
// without pods is one, if nothing else stands in for them: a cluster may have
// none.
func (d *Dump) Check() error {
	if len(d.pods) == 0 && (d.lists == 0 || d.others > 0) {
		return errors.New("there is no pod in it")
	}
	return nil
}

// Pods implements reaper.Cluster.
func (d *Dump) Pods(context.Context) ([]reaper.Pod, error) { return d.pods, nil }

// StatefulSets implements reaper.Cluster.
func (d *Dump) StatefulSets(context.Context) ([]reaper.StatefulSet, error) { return d.sets, nil }

// Nodes implements reaper.Cluster.
func (d *Dump) Nodes(context.Context) ([]reaper.Node, error) { return d.nodes, nil }

// Pod implements reaper.Cluster.
func (d *Dump) Pod(context.Context, reaper.PodRef) (reaper.Pod, reaper.Presence, error) {
	return reaper.Pod{}, reaper.Unknown, errors.New("a file cannot be asked again")
}
