package run_test

import (
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// fixedIPs is the policy of docs/policy.md for the resources of other projects.
var fixedIPs = regexp.MustCompile("(?s)```yaml\n(# fixed-ips.yaml\n.*?)```")

// otherResources returns the resources of that policy.
func (f *fixture) otherResources() []reservedips.Resource {
	f.Helper()
	page, err := os.ReadFile("../../docs/policy.md")
	f.must(err)
	found := fixedIPs.FindSubmatch(page)
	if found == nil {
		f.Fatal("docs/policy.md has no fixed-ips.yaml")
	}
	p, err := policy.Load(found[1], plugin.Known([]plugin.Plugin{reservedips.Plugin()}))
	f.must(err)
	return p.Backends[reservedips.Name].Settings.(*reservedips.Settings).Resources
}

// writeOther creates an object of another project.
func (f *fixture) writeOther(r reservedips.Resource, kind, namespace, name, fields string) {
	f.Helper()
	var o unstructured.Unstructured
	f.must(o.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"%s/%s","kind":%q,%s}`, r.Resource.Group, r.Resource.Version, kind, fields)))
	o.SetName(name)
	objects := f.Dynamic.Resource(schema.GroupVersionResource(r.Resource))
	var err error
	if namespace == "" {
		_, err = objects.Create(f.Context(), &o, metav1.CreateOptions{})
	} else {
		_, err = objects.Namespace(namespace).Create(f.Context(), &o, metav1.CreateOptions{})
	}
	f.must(err)
}

// The page's paths lead to what Kube-OVN and Spiderpool keep for pods that are gone, and no node or
// gateway of theirs holds the whole cluster.
func TestReservedIPsOfOtherProjectsAreListed(t *testing.T) {
	f := newFixture(t)
	file, err := cluster.OtherReservedIPCRDs()
	f.must(err)
	f.DefineT(t, file)
	all := f.otherResources()
	ovn, endpoints, reserved := all[0], all[1], all[2]
	f.writeOther(ovn, "IP", "", "db-0."+home, `"spec":{"podName":"db-0","namespace":"`+home+`","nodeName":"n1","subnet":"ovn-default","ipAddress":"10.16.0.4,fd00:10::4","v4IpAddress":"10.16.0.4","v6IpAddress":"fd00:10::4"}`)
	f.writeOther(ovn, "IP", "", "node-n1", `"spec":{"podName":"n1","namespace":"","nodeName":"n1","subnet":"join","ipAddress":"100.64.0.2","v4IpAddress":"100.64.0.2"}`)
	f.writeOther(endpoints, "SpiderEndpoint", home, "db-0", `"status":{"current":{"uid":"u1","node":"n1","ips":[
		{"interface":"eth0","ipv4":"10.6.0.4/16","ipv4Pool":"v4"},{"interface":"net1","ipv4":"10.7.0.4/16","ipv6":"fd00:7::4/64"}]}}`)
	f.writeOther(reserved, "SpiderReservedIP", "", "gateways", `"spec":{"ipVersion":4,"ips":["10.6.0.10-10.6.0.12","10.6.0.1","10.6.64.0-10.6.127.255"]}`)

	pod := ipam.PodRef{Namespace: home, Name: "db-0"}
	ips := func(texts ...string) (ips []netip.Addr) {
		for _, text := range texts {
			ips = append(ips, netip.MustParseAddr(text))
		}
		return ips
	}
	day := new(24 * time.Hour)
	want := []ipam.Protection{
		{Name: "ips.v1.kubeovn.io db-0." + home, Pod: pod, IPs: ips("10.16.0.4", "fd00:10::4"), TTL: day},
		{Name: "ips.v1.kubeovn.io node-n1", IPs: ips("100.64.0.2"), TTL: day},
		{Name: "spiderendpoints.v2beta1.spiderpool.spidernet.io " + home + "/db-0", Pod: pod, IPs: ips("10.6.0.4", "10.7.0.4", "fd00:7::4"), TTL: day},
		{
			Name: "spiderreservedips.v2beta1.spiderpool.spidernet.io gateways",
			IPs:  ips("10.6.0.10", "10.6.0.11", "10.6.0.12", "10.6.0.1"), Ranges: ipam.Spans{ipam.SpanOf(netip.MustParsePrefix("10.6.64.0/18"))},
		},
	}
	if diff := cmp.Diff(want, f.list(f.reserved(all...)), compareAddresses); diff != "" {
		t.Errorf("Protections (-want +got):\n%s", diff)
	}
}
