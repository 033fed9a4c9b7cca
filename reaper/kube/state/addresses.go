package state

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Tenants write what their pods and machines show, so its size is limited. An object that shows
// more has TooMuch set. A pod with 60 interfaces of two families shows 122 addresses; a
// network-status has about 400 bytes per interface; a container ID has 64 bytes. One address
// takes about 200 bytes in the census.
const (
	maxAddresses     = 128      // of a pod or a machine; also interfaces of a pod
	maxNetworkStatus = 64 << 10 // bytes of the annotation that are decoded
	maxEntries       = 1024     // of a network-status; each takes a microsecond, and the second look lists every pod
	maxSandbox       = 256      // bytes
)

// A showing is what a pod or a virtual machine shows: different addresses, in the order in
// which they were read. The zero value shows nothing.
type showing struct {
	addresses  []netip.Addr
	interfaces []census.Interface // with different names
	networks   []string           // of a network-status, one per entry
	defaults   []string           // the same for its default entries
	pairs      int                // number of addresses of all interfaces
	tooMuch    bool               // something was left out
}

// add adds the address in a text, and reports whether there is one.
func (s *showing) add(text string) bool {
	ip, ok := readIP(text)
	if ok {
		s.addIP(ip)
	}
	return ok
}

// addIP adds an address, unless it is there already.
func (s *showing) addIP(ip netip.Addr) {
	switch {
	case slices.Contains(s.addresses, ip):
	case len(s.addresses) == maxAddresses:
		s.tooMuch = true
	default:
		s.addresses = append(s.addresses, ip)
	}
}

// addToInterface adds an address of an interface.
func (s *showing) addToInterface(i *census.Interface, ip netip.Addr) {
	s.addIP(ip)
	switch {
	case slices.Contains(i.Addresses, ip):
	case s.pairs == maxAddresses:
		s.tooMuch = true
	default:
		i.Addresses = append(i.Addresses, ip)
		s.pairs++
	}
}

// interfaceNamed returns the interface with a name, or nil if there are too many.
func (s *showing) interfaceNamed(name string) *census.Interface {
	for i := range s.interfaces {
		if s.interfaces[i].Name == name {
			return &s.interfaces[i]
		}
	}
	if len(s.interfaces) == maxAddresses {
		s.tooMuch = true
		return nil
	}
	s.interfaces = append(s.interfaces, census.Interface{Name: name})
	return &s.interfaces[len(s.interfaces)-1]
}

// readNetworkStatus adds the addresses of a network-status annotation by interface. For an
// interface without a name, it uses the name of the network. It adds what it can read, up to
// the limits, and reports whether that is the whole annotation.
func (s *showing) readNetworkStatus(annotation string) bool {
	if annotation == "" {
		return true
	}
	if len(annotation) > maxNetworkStatus {
		s.tooMuch = true
		annotation = annotation[:maxNetworkStatus]
	}
	entries := json.NewDecoder(strings.NewReader(annotation))
	switch token, err := entries.Token(); {
	case err != nil || token != nil && token != json.Delim('['):
		return false
	case token == nil:
		return atEnd(entries)
	}
	readable := true
	for n := 0; entries.More(); n++ {
		if n == maxEntries {
			s.tooMuch = true
			return false
		}
		err := s.readEntry(entries)
		if wrong := (*json.UnmarshalTypeError)(nil); err != nil && !errors.As(err, &wrong) {
			return false
		}
		readable = readable && err == nil
	}
	_, err := entries.Token()
	return readable && err == nil && atEnd(entries)
}

// errNoAddress says that a network-status has an invalid address.
var errNoAddress = &json.UnmarshalTypeError{Field: "ips"}

// readEntry reads the next entry of a network-status. The error is an UnmarshalTypeError if
// later entries can still be read.
func (s *showing) readEntry(entries *json.Decoder) error {
	var e struct {
		Name      string   `json:"name"`
		Interface string   `json:"interface"`
		IPs       []string `json:"ips"`
		Default   bool     `json:"default"`
	}
	// An error in one field does not keep the others from being read.
	err := entries.Decode(&e)
	if err != nil && len(e.IPs) == 0 {
		return err
	}
	if e.Default {
		s.defaults = append(s.defaults, e.Name)
	} else {
		s.networks = append(s.networks, e.Name)
	}
	name := e.Interface
	if name == "" {
		name = "network " + e.Name
	}
	on := s.interfaceNamed(name)
	if on == nil {
		return err
	}
	on.Network = cmp.Or(on.Network, unique.Make(e.Name).Value()) // many pods have the same few
	for _, text := range e.IPs {
		ip, ok := readIP(text)
		if !ok {
			err = cmp.Or[error](err, errNoAddress)
			continue
		}
		s.addToInterface(on, ip)
	}
	return err
}

// atEnd reports whether only space follows.
func atEnd(values *json.Decoder) bool {
	_, err := values.Token()
	return errors.Is(err, io.EOF)
}

// readIP returns the address in a text, and whether there is one. The text may have a prefix
// length. An IPv4 address in IPv6 form becomes an IPv4 address, so that equal addresses compare
// equal.
func readIP(text string) (netip.Addr, bool) {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "/")
	ip, err := netip.ParseAddr(text)
	return ip.Unmap().WithZone(""), err == nil
}

// leavesOut reports whether a pod asks Multus for a network that its network-status does not
// name. Since 4.1, Multus writes no entry for a network whose plugin names no interface.
//
// Multus names a network by namespace and name. Until 3.4, it used the name in the network's
// configuration. Such a name stands for any network if the pod has the annotation that Multus
// wrote at that time. A name that a default entry also has stands for none.
func (s *showing) leavesOut(annotation, namespace string, old bool) bool {
	asked, ok := networksAsked(annotation, namespace)
	if !ok {
		return true
	}
	byDefault := make(map[string]bool, len(s.defaults))
	for _, name := range s.defaults {
		byDefault[name] = true
	}
	named := make(map[string]int, len(s.networks)) // how many entries; a pod may ask for one network twice
	plain := 0
	for _, name := range s.networks {
		switch {
		case byDefault[name]:
		case strings.Contains(name, "/"):
			named[name]++
		case old:
			plain++
		}
	}
	missing := slices.DeleteFunc(asked, func(name string) bool {
		named[name]--
		return named[name] >= 0
	})
	return len(missing) > plain
}

// networksAsked returns the networks that a pod's annotation asks for, as Multus reads it: a
// list in JSON, or namespace/name@interface separated by commas, where namespace and interface
// may be missing. Each is namespace/name, possibly repeated. It returns false if the annotation
// cannot be read, or asks for more than maxEntries.
func networksAsked(annotation, namespace string) (asked []string, ok bool) {
	if len(annotation) > maxNetworkStatus {
		return nil, false
	}
	add := func(of, name string) {
		if of == "" {
			of = namespace
		}
		asked = append(asked, of+"/"+name)
	}
	if strings.ContainsAny(annotation, `[{"`) {
		var list []struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		}
		if err := json.Unmarshal([]byte(annotation), &list); err != nil {
			return nil, false
		}
		for _, n := range list {
			add(n.Namespace, n.Name)
		}
		return asked, len(asked) <= maxEntries
	}
	for text := range strings.SplitSeq(annotation, ",") {
		if len(asked) == maxEntries {
			return nil, false
		}
		text, _, _ = strings.Cut(text, "@")
		of, name, found := strings.Cut(text, "/")
		if !found {
			of, name = "", text
		}
		add(strings.TrimSpace(of), strings.TrimSpace(name))
	}
	return asked, true
}

// The annotations in which a pod names the Calico IPPools that it wants, by name or CIDR.
const (
	ipv4Pools = "cni.projectcalico.org/ipv4pools"
	ipv6Pools = "cni.projectcalico.org/ipv6pools"
)

// fixedAddresses is the annotation in which a pod names the addresses that it wants from Calico.
const fixedAddresses = "cni.projectcalico.org/ipAddrs"

// defaultNetwork is the annotation in which a pod names the network attachment that Multus takes in place of the
// cluster's default network. A name without a namespace is of Multus' own, by default this one.
const (
	defaultNetwork  = "v1.multus-cni.io/default-network"
	multusNamespace = "kube-system"
)

// maxAsked limits how many addresses and IPPools of an annotation count.
const maxAsked = 128

// namePools sets the IPPools that annotations name.
func namePools(a *report.Asking, annotations map[string]string) {
	for key, into := range map[string]*[]string{ipv4Pools: &a.IPv4Pools, ipv6Pools: &a.IPv6Pools} {
		var pools []string
		if json.Unmarshal([]byte(annotations[key]), &pools) == nil {
			*into = pools[:min(len(pools), maxAsked)]
		}
	}
}

// namePoolsByNamespace sets the IPPools that a namespace names for those of its pods that name none, or says that
// these are not known.
func (c *Cluster) namePoolsByNamespace(ctx context.Context, a *report.Asking) {
	namespace := new(corev1.Namespace)
	if err := c.core.Get().Resource("namespaces").Name(a.Namespace).Do(ctx).Into(namespace); err != nil {
		a.ByNamespace = "its namespace may name IPPools, and was not read"
		return
	}
	if namePools(a, namespace.Annotations); len(a.IPv4Pools)+len(a.IPv6Pools) > 0 {
		a.ByNamespace = "its namespace names the IPPools"
	}
}

// toRestart says what gives a pod that runs an interface that it lacks.
const toRestart = "; if it lacks an interface, delete it: the kubelet adds none to a sandbox that runs"

// earlierStatus reports whether the network-status of a pod is of a sandbox before the one that runs: its default
// entry has addresses, and none of them is the pod's. Multus writes it before the pod gets its addresses.
func earlierStatus(pod *corev1.Pod) bool {
	var entries []struct {
		IPs     []string `json:"ips"`
		Default bool     `json:"default"`
	}
	if json.Unmarshal([]byte(pod.Annotations[networkStatus]), &entries) != nil || len(pod.Status.PodIPs) == 0 {
		return false
	}
	has := func(text string) bool {
		ip, ok := readIP(text)
		return ok && slices.ContainsFunc(pod.Status.PodIPs, func(of corev1.PodIP) bool {
			own, _ := readIP(of.IP)
			return own == ip
		})
	}
	for _, e := range entries {
		if e.Default && len(e.IPs) > 0 {
			return !slices.ContainsFunc(e.IPs, has)
		}
	}
	return false
}

// Asking returns the pods with that name, in any namespace if none is given, the networks they ask for, and
// what events say of those that wait.
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
			a := readAsking(pod, readPod(pod))
			if a.Waits || a.Node == "" {
				events, err := c.events(ctx, pod)
				if a.Events = events; err != nil {
					a.EventsUnknown = printable.Error(err)
				}
			}
			if a.Waits && a.Default && len(a.IPv4Pools)+len(a.IPv6Pools) == 0 {
				c.namePoolsByNamespace(ctx, &a)
			}
			asking = append(asking, a)
		}
	}
	return asking, nil
}

// readAsking says what a pod asks for, and whether it waits.
func readAsking(pod *corev1.Pod, p census.Pod) report.Asking {
	a := report.Asking{Namespace: pod.Namespace, Pod: pod.Name, Node: p.Node, Default: p.InStatus == 0}
	switch {
	case p.Finished:
		a.Why = "has ended"
	case p.Node == "":
		a.Why = "has no node yet, and so no address"
	case pod.Spec.HostNetwork && !p.LeavesOut && !p.AddressUnknown:
		a.Why = "uses the network of its node, and needs no address"
	case earlierStatus(pod):
		a.Why = "runs, and its network-status does not show its address, as if it were of an earlier sandbox: it may run without what only that shows" + toRestart
		a.Restart = true
	case !p.LeavesOut && !p.AddressUnknown:
		a.Why = "has every address that it asks for"
	case p.InStatus > 0 && pod.Status.Phase == corev1.PodRunning:
		a.Why = "runs, and its network-status does not show every network that it asks for" + toRestart
		a.Restart = true
	default:
		a.Waits = true
	}
	a.Default = a.Default && !pod.Spec.HostNetwork
	for _, in := range []struct{ annotation, namespace string }{{networks, pod.Namespace}, {defaultNetwork, multusNamespace}} {
		text := pod.Annotations[in.annotation]
		if asked, ok := networksAsked(text, in.namespace); text != "" && ok { // what cannot be read asks for nothing
			a.Attachments = append(a.Attachments, asked...)
		}
	}
	a.Default = a.Default && pod.Annotations[defaultNetwork] == ""
	namePools(&a, pod.Annotations)
	var fixed []string
	if json.Unmarshal([]byte(pod.Annotations[fixedAddresses]), &fixed) == nil {
		a.Fixed = fixed[:min(len(fixed), maxAsked)]
	}
	if pod.DeletionTimestamp != nil {
		grace := ptr.Deref(pod.DeletionGracePeriodSeconds, 0)
		ip, annotated := pod.Annotations[calicoPodIP]
		a.Waits, a.Deletion = false, &report.Deletion{
			Since: pod.DeletionTimestamp.Add(-time.Duration(grace) * time.Second).UTC(), Grace: grace, Finalizers: pod.Finalizers, Emptied: annotated && ip == "",
		}
	}
	return a
}
