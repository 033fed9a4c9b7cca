package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NetworkAttachments is the resource that NetworkAttachmentCRD defines.
var NetworkAttachments = schema.GroupVersionResource{
	Group: "k8s.cni.cncf.io", Version: "v1", Resource: "network-attachment-definitions",
}

// CreateNetwork creates a network attachment with the CNI configuration.
func (c *Cluster) CreateNetwork(ctx context.Context, namespace, name, config string) error {
	attachment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": NetworkAttachments.GroupVersion().String(),
		"kind":       "NetworkAttachmentDefinition",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"config": config},
	}}
	_, err := c.Dynamic.Resource(NetworkAttachments).Namespace(namespace).Create(ctx, attachment, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create network attachment %s/%s: %w", namespace, name, err)
	}
	return nil
}

// NetworkStatusAnnotation is where Multus writes a pod's addresses.
const NetworkStatusAnnotation = "k8s.v1.cni.cncf.io/network-status"

// A NetworkStatus is what Multus writes about one interface of a pod.
type NetworkStatus struct {
	Name      string   `json:"name"`
	Interface string   `json:"interface,omitempty"`
	IPs       []string `json:"ips,omitempty"`
	MAC       string   `json:"mac,omitempty"`
	Default   bool     `json:"default,omitempty"`
	DNS       struct{} `json:"dns"`
}

// Attached returns the status of a secondary interface with the addresses.
func Attached(network, iface string, ips ...string) NetworkStatus {
	return NetworkStatus{Name: network, Interface: iface, IPs: ips}
}

// Networks gives the pod the annotation that Multus writes when all its interfaces exist: the pod's
// primary network, and then those given. With PodIPs, it must come after it; with UpdatePod, it is
// what Multus writes after the last ADD.
func Networks(attached ...NetworkStatus) PodOption {
	return func(p *corev1.Pod) {
		if p.Status.PodIPs == nil {
			PodIPs(freshIP())(p)
		}
		Annotation(NetworkStatusAnnotation, networkStatus(p, attached))(p)
	}
}

// networkStatus returns the annotation, indented like Multus's.
func networkStatus(p *corev1.Pod, attached []NetworkStatus) string {
	primary := NetworkStatus{Name: "cbr0", Interface: "eth0", Default: true}
	for _, ip := range p.Status.PodIPs {
		primary.IPs = append(primary.IPs, ip.IP)
	}
	text, err := json.MarshalIndent(slices.Concat([]NetworkStatus{primary}, attached), "", "    ")
	if err != nil {
		panic(err) // strings and booleans always marshal
	}
	return string(text)
}
