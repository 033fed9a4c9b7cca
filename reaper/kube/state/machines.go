package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

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
		if err := kube.Discover(ctx, client, &served, "/apis", group, version); err != nil {
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
	if err := kube.Discover(ctx, client, &served, "/apis"); err != nil {
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
