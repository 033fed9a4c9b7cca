// Package state is the API server's side of a run: the census, the ledger, the lock and the
// journals.
package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Cluster reads pods, virtual machines, StatefulSets and nodes from the API server. It
// implements census.Cluster. Requests have no resourceVersion: the API server answers a read by
// name from its store, and a list from its store or from a cache that it takes to be as fresh.
type Cluster struct {
	core, apps, raw rest.Interface
	node            string // the node whose pods are listed; empty: all
}

// A Group is the client of an API group.
type Group interface {
	RESTClient() rest.Interface
}

// NewCluster returns the cluster over clients for core/v1 and apps/v1; raw is a RawClient. It
// does not take the clientset of all API groups, which would make the program 15 MB larger.
func NewCluster(core, apps Group, raw rest.Interface) *Cluster {
	return &Cluster{core: core.RESTClient(), apps: apps.RESTClient(), raw: raw}
}

// NewNodePods returns only the pods of one node: it lists no virtual machines, StatefulSets or
// nodes. It is for runs on a node, where those lists keep nothing. raw is a RawClient.
func NewNodePods(core Group, raw rest.Interface, node string) *Cluster {
	return &Cluster{core: core.RESTClient(), raw: raw, node: node}
}

// Pods implements census.Cluster.
func (c *Cluster) Pods(ctx context.Context) ([]census.Pod, error) {
	request := func() *rest.Request {
		pods := c.core.Get().Resource("pods")
		if c.node != "" {
			pods.Param("fieldSelector", "spec.nodeName="+c.node)
		}
		return pods
	}
	list, err := kube.ReadList(ctx, c.raw, request, podForm())
	return list, kube.Answered(err)
}

// StatefulSets implements census.Cluster.
func (c *Cluster) StatefulSets(ctx context.Context) ([]census.StatefulSet, error) {
	return readAll(ctx, c, c.apps, "statefulsets", kube.FormOf("apps/v1", "StatefulSetList", readStatefulSet))
}

// Nodes implements census.Cluster.
func (c *Cluster) Nodes(ctx context.Context) ([]census.Node, error) {
	return readAll(ctx, c, c.core, "nodes", kube.FormOf("v1", "NodeList", readNode))
}

// readAll reads every object of a resource; none if only the pods of a node are listed.
func readAll[T any](ctx context.Context, c *Cluster, group rest.Interface, resource string, form kube.Form[T]) ([]T, error) {
	if c.node != "" {
		return nil, ctx.Err()
	}
	request := func() *rest.Request { return group.Get().Resource(resource) }
	list, err := kube.ReadList(ctx, c.raw, request, form)
	return list, kube.Answered(err)
}

// Pod implements census.Cluster for a pod of any node. It makes one request. If the API server
// asks to come back later, the error says when: the client does not wait, because other pods
// can be looked at meanwhile.
func (c *Cluster) Pod(ctx context.Context, ref ipam.PodRef) (census.Pod, census.Presence, error) {
	pod := new(corev1.Pod)
	err := c.core.Get().Namespace(ref.Namespace).Resource("pods").Name(ref.Name).MaxRetries(0).Do(ctx).Into(pod)
	switch {
	case err == nil:
		return readPod(pod), census.Present, nil
	case kube.Gone(err, "pods", ref.Name):
		return census.Pod{}, census.Absent, nil
	default:
		return census.Pod{}, census.Unknown, kube.Answered(err)
	}
}

// The resource of KubeVirt's running virtual machines.
const (
	machineGroup    = "kubevirt.io"
	machineResource = "virtualmachineinstances"
	machineKind     = "VirtualMachineInstance"
)

// VirtualMachines implements census.Cluster. It first asks the API server for its resources: an
// account without any rights to virtual machines may do so, and neither a 404 nor a 403 for the
// list proves that there is no such resource.
func (c *Cluster) VirtualMachines(ctx context.Context) ([]census.VirtualMachine, error) {
	if c.node != "" {
		return nil, ctx.Err()
	}
	version, err := servedVersion(ctx, c.raw, machineGroup, machineResource)
	if err != nil || version == "" {
		return nil, kube.Answered(err)
	}
	all, err := kube.ListReduced(ctx, c.raw, func(get *rest.Request) *rest.Request {
		return get.AbsPath("/apis", machineGroup, version, machineResource)
	}, readMachine)
	return all, kube.Answered(err)
}

// readMachine reduces a VirtualMachineInstance to the facts that verdicts rest on. Unreadable
// parts do not keep the rest from being read.
func readMachine(item json.RawMessage) census.VirtualMachine {
	var vmi struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			Created   string `json:"creationTimestamp"`
		} `json:"metadata"`
		Status struct {
			Phase      string `json:"phase"`
			Conditions []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
			} `json:"conditions"`
			Interfaces []struct {
				IP         string   `json:"ipAddress"`
				IPs        []string `json:"ipAddresses"`
				InfoSource string   `json:"infoSource"`
			} `json:"interfaces"`
		} `json:"status"`
	}
	_ = json.Unmarshal(item, &vmi) // it reads on after a value of a wrong type
	m := census.VirtualMachine{Namespace: vmi.Metadata.Namespace, Name: vmi.Metadata.Name}
	m.Created, _ = time.Parse(time.RFC3339, vmi.Metadata.Created)
	for _, c := range vmi.Status.Conditions {
		m.Reported = m.Reported || c.Type == "AgentConnected" && c.Status == "True"
	}
	m.Reported = m.Reported && len(vmi.Status.Interfaces) > 0
	var s showing
	for _, i := range vmi.Status.Interfaces {
		for _, text := range i.IPs {
			s.add(text)
		}
		s.add(i.IP)
		// Other sources are "domain" and "multus-status": they know the interface, but not what
		// the guest makes of it. An agent that has just connected has not reported the
		// addresses yet.
		m.Reported = m.Reported && strings.Contains(i.InfoSource, "guest-agent") && i.IP != ""
	}
	// Not Failed: KubeVirt also says that about a machine on a node that it cannot reach.
	m.Reported = m.Reported || vmi.Status.Phase == "Succeeded"
	m.Addresses, m.TooMuch = s.addresses, s.tooMuch
	return m
}

// servedVersion returns a version in which the API server serves a resource of an API group, if
// possible the preferred one. It returns an empty version if the API server says that it serves
// the resource in none. An upgrade may bring a new version of one kind of the group before the
// others.
func servedVersion(ctx context.Context, client rest.Interface, group, resource string) (string, error) {
	versions, err := versionsOf(ctx, client, group)
	if err != nil {
		return "", err
	}
	for _, version := range versions {
		var served metav1.APIResourceList
		if err := kube.Read(ctx, client, &served, "/apis", group, version); err != nil {
			return "", fmt.Errorf("list the resources of %s/%s: %w", group, version, err)
		}
		if served.Kind != "APIResourceList" || served.GroupVersion != group+"/"+version {
			return "", fmt.Errorf("list the resources of %s/%s: the answer is not a list of its resources", group, version)
		}
		if slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
			return version, nil
		}
	}
	return "", nil
}

// versionsOf returns the versions of an API group, the preferred one first; none if the API
// server says that it does not serve the group.
func versionsOf(ctx context.Context, client rest.Interface, group string) ([]string, error) {
	var served metav1.APIGroupList
	if err := kube.Read(ctx, client, &served, "/apis"); err != nil {
		return nil, fmt.Errorf("list the API groups: %w", err)
	}
	at := func(name string) int {
		return slices.IndexFunc(served.Groups, func(g metav1.APIGroup) bool { return g.Name == name })
	}
	if served.Kind != "APIGroupList" || at("apps") < 0 { // every API server has it
		return nil, errors.New("list the API groups: the answer is incomplete: it lacks apps")
	}
	i := at(group)
	if i < 0 {
		return nil, nil
	}
	preferred := served.Groups[i].PreferredVersion.Version
	if preferred == "" {
		return nil, fmt.Errorf("list the API groups: %s has no version", group)
	}
	versions := []string{preferred}
	for _, v := range served.Groups[i].Versions {
		if v.Version != preferred {
			versions = append(versions, v.Version)
		}
	}
	return versions, nil
}
