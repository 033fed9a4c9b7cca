package state

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// The annotations in which a pod names the Calico IPPools that it wants, by name or CIDR.
var poolAnnotations = []string{"cni.projectcalico.org/ipv4pools", "cni.projectcalico.org/ipv6pools"}

// Asking returns the pods with that name, in any namespace if none is given, and the networks
// they ask for.
func (c *Cluster) Asking(ctx context.Context, namespace, name string) ([]report.Asking, error) {
	request := c.core.Get().Resource("pods").Param("fieldSelector", "metadata.name="+name)
	if namespace != "" {
		request.Namespace(namespace)
	}
	var pods corev1.PodList
	if err := request.Do(ctx).Into(&pods); err != nil {
		return nil, fmt.Errorf("list pods named %s: %w", name, kube.Answered(err))
	}
	var asking []report.Asking
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Name == name {
			asking = append(asking, readAsking(pod, readPod(pod)))
		}
	}
	return asking, nil
}

// Asking is Cluster.Asking for the pods in the files that wait for an address.
func (d *Dump) Asking(_ context.Context, namespace, name string) ([]report.Asking, error) {
	var found []report.Asking
	for _, a := range d.asking {
		if a.Pod == name && (namespace == "" || a.Namespace == namespace) {
			found = append(found, a)
		}
	}
	return found, nil
}

// readAsking says what a pod asks for, and whether it waits.
func readAsking(pod *corev1.Pod, p census.Pod) report.Asking {
	a := report.Asking{Namespace: pod.Namespace, Pod: pod.Name, Default: p.InStatus == 0}
	switch {
	case p.Finished:
		a.Why = "has ended"
	case p.Node == "":
		a.Why = "has no node yet, and so no address"
	case pod.Spec.HostNetwork && !p.LeavesOut && !p.AddressUnknown:
		a.Why = "uses the network of its node, and needs no address"
	case !p.LeavesOut && !p.AddressUnknown:
		a.Why = "has every address for which it asks"
	default:
		a.Waits = true
	}
	a.Default = a.Default && !pod.Spec.HostNetwork
	if asked := pod.Annotations[networks]; asked != "" {
		a.Attachments, _ = networksAsked(asked, pod.Namespace) // an unreadable one asks for nothing
	}
	for _, key := range poolAnnotations {
		var pools []string
		if json.Unmarshal([]byte(pod.Annotations[key]), &pools) == nil {
			a.IPPools = append(a.IPPools, pools...)
		}
	}
	return a
}
