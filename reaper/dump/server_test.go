package dump

import (
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

const (
	pods  = `{"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"namespace": "shop", "name": "web"}}, {"metadata": {"namespace": "cart", "name": "web"}}]}`
	nodes = `{"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}`
	vmis  = `{"kind": "VirtualMachineInstanceList", "apiVersion": "kubevirt.io/v1", "items": [{"metadata": {"namespace": "vms", "name": "a"}, "status": {"interfaces": [{"ipAddress": "10.2.0.1"}]}}]}`
	whole = `{"kind": "Dump", "apiVersion": "ip-reaper/v1alpha1"}`
)

// reading returns the cluster that a file stands for, and a client of it.
func reading(t *testing.T, text string) (*state.Cluster, rest.Interface) {
	t.Helper()
	read, err := Read(t.Context(), strings.NewReader(text), []string{Stdin})
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: "http://files", Transport: read.Server}
	client, err := kube.RawClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return state.NewCluster(corev1.NewForConfigOrDie(config), appsv1.NewForConfigOrDie(config), client), client
}

func TestFilesAnswerWithTheirLists(t *testing.T) {
	c, _ := reading(t, pods+nodes+vmis)
	machines, err := c.VirtualMachines(t.Context())
	guest := []census.VirtualMachine{{Namespace: "vms", Name: "a", Addresses: []netip.Addr{netip.MustParseAddr("10.2.0.1")}}}
	if diff := cmp.Diff(guest, machines, cmpopts.EquateComparable(netip.Addr{})); diff != "" || err != nil {
		t.Errorf("VirtualMachines: %v (-want +got):\n%s", err, diff)
	}
	found, err := c.Nodes(t.Context())
	if len(found) != 1 || found[0].Name != "a" || !found[0].Ready || err != nil {
		t.Errorf("Nodes: %+v, %v", found, err)
	}
	asking, err := c.Asking(t.Context(), "shop", "web")
	if len(asking) != 1 || asking[0].Namespace != "shop" || err != nil {
		t.Errorf("Asking: %+v, %v", asking, err)
	}
}

// An object outside of namespaces is there by its name if files have it. Any other one is unread, and events are those
// of their namespace, whatever the selector: the census picks them.
func TestFilesAnswerWithAnObjectByItsName(t *testing.T) {
	const namespaces = `{"kind": "NamespaceList", "apiVersion": "v1", "items": [{"metadata": {"name": "cart"}}, {"metadata": {"name": "shop", "uid": "u1"}}]}`
	const events = `{"kind": "EventList", "apiVersion": "v1", "items": [
		{"metadata": {"namespace": "shop", "name": "a"}, "reason": "A"}, {"metadata": {"namespace": "cart", "name": "b"}, "reason": "B"}]}`
	_, client := reading(t, pods+namespaces+events)
	var got struct {
		Metadata kube.Metadata `json:"metadata"`
	}
	if err := kube.Read(t.Context(), client, &got, "/api/v1/namespaces/shop"); err != nil || got.Metadata.UID != "u1" {
		t.Errorf("namespace shop: %+v, %v", got, err)
	}
	for _, path := range []string{"/api/v1/namespaces/sho", "/api/v1/nodes/shop", "/api/v1/namespaces/shop/pods/web", "/apis/x.org/v1/namespaces/shop"} {
		if err := kube.Read(t.Context(), client, new(json.RawMessage), path); !ipam.IsUnread(err) {
			t.Errorf("%s: %v, want it unread", path, err)
		}
	}
	for _, selector := range []string{"", "involvedObject.uid=u2,type=Warning"} {
		list, err := kube.ListRaw(t.Context(), client, func(get *rest.Request) *rest.Request {
			return get.AbsPath("/api/v1/namespaces/shop/events").Param("fieldSelector", selector)
		})
		if err != nil || len(list) != 1 || !strings.Contains(string(list[0]), `"A"`) {
			t.Errorf("events by %q: %s, %v", selector, list, err)
		}
	}
}

// Promise 2. What files lack is unread, and not gone: only what a whole dump says to be absent is not there.
func TestWhatFilesLackIsNotGone(t *testing.T) {
	type request struct{ list, path string }
	ask := func(client rest.Interface, of request) error {
		if of.list != "" {
			_, err := kube.ListRaw(t.Context(), client, func(get *rest.Request) *rest.Request { return get.AbsPath(of.list) })
			return err
		}
		return kube.Read(t.Context(), client, new(json.RawMessage), of.path)
	}
	never := []request{
		{list: "/apis/k8s.cni.cncf.io/v1alpha1/ipamclaims"}, {list: "/apis/x.org/v1/reservedips"},
		{path: "/api/v1/namespaces/shop"}, {path: "/api/v1/namespaces/shop/pods/gone"}, {path: "/api/v1/namespaces/shop/pods/web"},
		{path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/x"}, {path: "/apis/x.org/v1"}, {path: "/healthz"},
	}
	never = append(never, request{list: "/api/v1/nodes"}, request{list: "/apis/apps/v1/statefulsets"})
	stores := []request{{list: "/apis/whereabouts.cni.cncf.io/v1alpha1/ippools"}}
	beside := []request{{list: "/apis/whereabouts.cni.cncf.io/v1alpha1/nodeslicepools"}, {list: "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions"}}
	const part = `{"kind": "IPPoolList", "apiVersion": "whereabouts.cni.cncf.io/v1alpha1", "metadata": {"continue": "x"}, "items": [{}]}`
	failed := strings.Replace(whole, "}", `, "time": "2026-03-01T12:00:00Z", "error": "forbidden"}`, 1)
	for name, text := range map[string]string{"of kubectl": pods, "a part of a list": pods + part, "a dump that failed": pods + failed} {
		c, client := reading(t, text)
		for _, of := range slices.Concat(never, stores, beside) {
			if err := ask(client, of); !ipam.IsUnread(err) || !errors.Is(err, ipam.ErrRefused) || apierrors.IsNotFound(err) {
				t.Errorf("%s: %+v: %v, want it unread", name, of, err)
			}
		}
		if _, err := c.VirtualMachines(t.Context()); !ipam.IsUnread(err) {
			t.Errorf("%s: VirtualMachines: %v, want them unread", name, err)
		}
		if _, presence, err := c.Pod(t.Context(), ipam.PodRef{Namespace: "shop", Name: "gone"}); presence != census.Unknown || err == nil {
			t.Errorf("%s: a pod is %v, %v: a file allows no second look", name, presence, err)
		}
	}
	says := func(missing string) string { return strings.Replace(whole, "}", `, "missing": {`+missing+`}}`, 1) }
	for name, tt := range map[string]struct {
		end                     string
		unread, absent, refused []request
	}{
		"of an older version": {whole, slices.Concat(never, beside), stores, nil},
		"that misses nothing": {says(""), slices.Concat(never, beside, stores), nil, nil},
		"without two of Whereabouts": {
			says(`"ippools.whereabouts.cni.cncf.io": "absent", "nodeslicepools.whereabouts.cni.cncf.io": "absent", "network-attachment-definitions.k8s.cni.cncf.io": "unread"`),
			never, slices.Concat(stores, beside[:1]), beside[1:],
		},
		"beside one that could not read what it does not have": {
			says(`"ippools.whereabouts.cni.cncf.io": "unread"`) + says(`"ippools.whereabouts.cni.cncf.io": "absent"`),
			slices.Concat(never, beside), nil, stores,
		},
	} {
		c, client := reading(t, pods+tt.end)
		for _, of := range tt.unread {
			if err := ask(client, of); !ipam.IsUnread(err) {
				t.Errorf("a whole dump %s: %+v: %v, want it unread", name, of, err)
			}
		}
		for _, of := range tt.absent {
			if err := ask(client, of); !apierrors.IsNotFound(err) {
				t.Errorf("a whole dump %s: %+v: %v, want it not found", name, of, err)
			}
		}
		for _, of := range tt.refused {
			if err := ask(client, of); !apierrors.IsForbidden(err) {
				t.Errorf("a whole dump %s: %+v: %v, want it refused", name, of, err)
			}
		}
		if machines, err := c.VirtualMachines(t.Context()); len(machines) != 0 || err != nil {
			t.Errorf("a whole dump %s: VirtualMachines: %v, %v", name, machines, err)
		}
	}
	// Another kind of the group does not tell which machines run.
	c, _ := reading(t, pods+strings.ReplaceAll(vmis, "VirtualMachineInstance", "VirtualMachine"))
	if _, err := c.VirtualMachines(t.Context()); !ipam.IsUnread(err) {
		t.Errorf("beside machines that may not run: %v, want them unread", err)
	}
}

func TestPartsOfListsByWhichAClusterIsJudgedAreRefused(t *testing.T) {
	for _, part := range []string{
		`{"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": "x"}, "items": []}`,
		`{"kind": "VirtualMachineInstanceList", "apiVersion": "kubevirt.io/v1", "metadata": {"continue": "x"}, "items": []}`,
	} {
		_, err := Read(t.Context(), strings.NewReader(part), []string{Stdin})
		if err == nil || err.Error() != "stdin: document 1 is only a part of a list: dump the whole list" {
			t.Errorf("Read: %v", err)
		}
	}
}
