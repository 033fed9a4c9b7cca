package state

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/reaper/census"
)

const (
	groupsPath    = "/apis"
	kubevirtPath  = "/apis/kubevirt.io/v1"
	machinesPath  = "/apis/kubevirt.io/v1/virtualmachineinstances"
	appsGroup     = `{"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}], "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"}}`
	kubevirtGroup = `{"name": "kubevirt.io", "versions": [{"groupVersion": "kubevirt.io/v1alpha3", "version": "v1alpha3"}, {"groupVersion": "kubevirt.io/v1", "version": "v1"}],
		"preferredVersion": {"groupVersion": "kubevirt.io/v1", "version": "v1"}}`
)

// groups answers like an API server that serves these groups.
func groups(all ...string) http.HandlerFunc {
	return say(`{"kind": "APIGroupList", "apiVersion": "v1", "groups": [` + strings.Join(all, ",") + `]}`)
}

// resources answers like an API server for a version with these resources.
func resources(version string, names ...string) http.HandlerFunc {
	var all []string
	for _, name := range names {
		all = append(all, `{"name": "`+name+`"}`)
	}
	return say(`{"kind": "APIResourceList", "groupVersion": "` + version + `", "resources": [` + strings.Join(all, ",") + `]}`)
}

// machineList is a page of a list.
func machineList(next string, items ...string) string {
	return `{"kind": "VirtualMachineInstanceList", "metadata": {"resourceVersion": "9", "continue": "` + next + `"}, "items": [` + strings.Join(items, ",") + `]}`
}

// A guest's addresses are evidence, so an unreadable one must not hide others.
func TestVirtualMachinesReadsEveryPageAndAddress(t *testing.T) {
	c := newCluster(t, map[string]http.HandlerFunc{
		groupsPath:   groups(appsGroup, kubevirtGroup),
		kubevirtPath: resources("kubevirt.io/v1", "kubevirts", "virtualmachineinstances", "virtualmachineinstances/status"),
		machinesPath: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("continue") == "" {
				say(machineList("2", `{"metadata": {"namespace": "vms", "name": "a"}, "status": {"phase": "Running", "interfaces": [
					{"name": "default", "ipAddress": "10.1.0.1", "ipAddresses": ["10.1.0.1", "fd00::1"]},
					{"name": "lan", "ipAddress": "::ffff:10.2.0.1"}, {"name": "none"}]}}`,
					`{"metadata": {"namespace": "vms", "name": "starting"}}`))(w, r)
				return
			}
			say(machineList("", `{"metadata": {"namespace": "vms", "name": "odd"}, "status": {"interfaces": [
				7, {"name": 7, "ipAddress": "10.3.0.1/24", "ipAddresses": "10.3.0.2"}, {"ipAddress": "none", "ipAddresses": [7, "10.3.0.3"]}]}}`,
				`{"metadata": {"namespace": "vms", "name": "odder"}, "status": []}`, `7`,
				`{"metadata": {"namespace": 7, "name": "last"}, "status": {"interfaces": [{"ipAddress": "10.4.0.1"}]}}`))(w, r)
		},
	})
	got, err := c.VirtualMachines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ips := func(texts ...string) (ips []netip.Addr) {
		for _, text := range texts {
			ips = append(ips, netip.MustParseAddr(text))
		}
		return ips
	}
	want := []census.VirtualMachine{
		{Namespace: "vms", Name: "a", Addresses: ips("10.1.0.1", "fd00::1", "10.2.0.1")},
		{Namespace: "vms", Name: "starting"},
		{Namespace: "vms", Name: "odd", Addresses: ips("10.3.0.1", "10.3.0.3")},
		{Namespace: "vms", Name: "odder"},
		{},
		{Name: "last", Addresses: ips("10.4.0.1")},
	}
	if diff := cmp.Diff(want, got, compareAddresses); diff != "" {
		t.Errorf("VirtualMachines (-want +got):\n%s", diff)
	}
}

// Promise 1. The version that the API server prefers may only have another kind of the group.
func TestVirtualMachinesAreListedInAVersionThatIsServed(t *testing.T) {
	c := newCluster(t, map[string]http.HandlerFunc{
		groupsPath:             groups(appsGroup, `{"name": "kubevirt.io", "versions": [{"version": "v2"}, {"version": "v1"}], "preferredVersion": {"version": "v2"}}`),
		"/apis/kubevirt.io/v2": resources("kubevirt.io/v2", "kubevirts"),
		kubevirtPath:           resources("kubevirt.io/v1", "virtualmachineinstances"),
		machinesPath:           say(machineList("", `{"metadata": {"name": "a"}}`)),
	})
	if got, err := c.VirtualMachines(t.Context()); len(got) != 1 || err != nil {
		t.Errorf("VirtualMachines = %v, %v, want one", got, err)
	}
}

// Promise 2. Only the API server itself can say that it has no such resource. A missing handler
// must not be called.
func TestNoVirtualMachinesOnlyIfTheAPIServerSaysSo(t *testing.T) {
	machines := schema.GroupResource{Group: "kubevirt.io", Resource: "virtualmachineinstances"}
	there := resources("kubevirt.io/v1", "virtualmachineinstances")
	for _, tt := range []struct {
		name                    string
		groups, resources, list http.HandlerFunc
		error                   string
	}{
		{"KubeVirt is not installed", groups(appsGroup), nil, nil, ""},
		{"only its operator is", groups(appsGroup, `{"name": "kubevirt.io", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}`), resources("kubevirt.io/v1", "kubevirts"), nil, ""},
		{"no virtual machine", groups(appsGroup, kubevirtGroup), there, say(machineList("")), ""},

		{"no word of its own groups", groups(), nil, nil, "incomplete"},
		{"no list of groups", say(`{"groups": [` + appsGroup + `]}`), nil, nil, "incomplete"},
		{"a proxy knows no groups", plain(http.StatusNotFound), nil, nil, "list the API groups"},
		{"groups are forbidden", inJSON.refuse(apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))), nil, nil, "list the API groups"},
		{"a group without a version", groups(appsGroup, `{"name": "kubevirt.io"}`), nil, nil, "kubevirt.io has no version"},

		{"a proxy knows no resources", groups(appsGroup, kubevirtGroup), plain(http.StatusNotFound), nil, "list the resources of kubevirt.io/v1"},
		{"resources of another group", groups(appsGroup, kubevirtGroup), resources("apps/v1", "deployments"), nil, "not a list of its resources"},
		{"no list of resources", groups(appsGroup, kubevirtGroup), say(`{"groupVersion": "kubevirt.io/v1"}`), nil, "not a list of its resources"},

		{"no right to list", groups(appsGroup, kubevirtGroup), there, inJSON.refuse(apierrors.NewForbidden(machines, "", errors.New("no"))), "is forbidden"},
		{"not found, but served", groups(appsGroup, kubevirtGroup), there, inJSON.refuse(apierrors.NewNotFound(machines, "")), "not found"},
		{"no list", groups(appsGroup, kubevirtGroup), there, say(`{}`), "not a list"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // requests without an answer are retried after a while
			c := newCluster(t, map[string]http.HandlerFunc{groupsPath: tt.groups, kubevirtPath: tt.resources, machinesPath: tt.list})
			got, err := c.VirtualMachines(t.Context())
			if len(got) > 0 || (err == nil) != (tt.error == "") || err != nil && !strings.Contains(err.Error(), tt.error) {
				t.Errorf("VirtualMachines = %v, %v, want none and %q", got, err, tt.error)
			}
		})
	}
}
