package hostlocal

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Promise 1. Only the networks of the configuration that the runtime loads, the first by name,
// are the runtime's, including those it delegates to.
func TestWhoseNetworksAre(t *testing.T) {
	const multus = `{"name": "multus-cni-network", "type": "multus", `
	for _, tt := range []struct {
		name  string
		confs map[string]string
		own   string // the networks that are the runtime's
		held  string // a word from why the others are held
	}{
		{"a list", map[string]string{"10-a.conflist": `{"name": "a", "plugins": [{"type": "bridge", "ipam": {"type": "host-local"}}, {"type": "portmap"}]}`}, "a", "is not the container runtime's"},
		{"a single plugin", map[string]string{"10-a.conf": `{"name": "a", "type": "bridge", "ipam": {"type": "host-local"}}`}, "a", ""},
		{"flannel", map[string]string{"10-a.conflist": `{"name": "a", "plugins": [{"type": "flannel", "delegate": {"isDefaultGateway": true}}]}`}, "a", ""},
		{"Multus", map[string]string{"00-m.conf": multus + `"delegates": [{"name": "a", "plugins": [{"type": "bridge"}]}, {"name": "b", "type": "macvlan"}]}`}, "a b", ""},
		{"Multus with a file", map[string]string{
			"00-m.conf": multus + `"clusterNetwork": "/host/etc/cni/net.d/10-a.conflist"}`, "10-a.conflist": `{"name": "a", "plugins": [{"type": "flannel"}]}`}, "a", ""},
		{"Multus that names itself", map[string]string{"00-m.conf": multus + `"clusterNetwork": "multus-cni-network"}`}, "", ""},
		{"the first of two", map[string]string{"10-a.conflist": `{"name": "a", "plugins": [{"type": "bridge"}]}`, "20-b.conf": `{"name": "b", "type": "bridge"}`}, "a", ""},
		{"podman's alone", map[string]string{"87-podman-bridge.conflist": `{"name": "a", "plugins": [{"type": "bridge"}]}`}, "", "belongs to podman"},
		{"a network of podman by its bridge", map[string]string{"net.conflist": `{"name": "a", "plugins": [{"type": "bridge", "bridge": "cni-podman1"}]}`}, "", "belongs to podman"},
		{"a network of podman by its labels", map[string]string{"net.conflist": `{"name": "a", "args": {"podman_labels": {}}, "plugins": [{"type": "macvlan"}]}`}, "", "belongs to podman"},
		{"nerdctl's alone", map[string]string{"00-x.conflist": `{"name": "a", "nerdctlID": "1", "plugins": [{"type": "bridge"}]}`}, "", "belongs to nerdctl"},
		{"one that nerdctl has too", map[string]string{"10-a.conf": `{"name": "a", "type": "bridge"}`, "20-a.conflist": `{"name": "a", "nerdctlID": "1", "plugins": [{"type": "bridge"}]}`}, "", "belongs to nerdctl"},
		{"none", nil, "", "has no network configuration"},
		{"other files", map[string]string{"README": "x", "10-a.conflist.bak": `{"name": "a", "type": "bridge"}`}, "", "has no network configuration"},
		{"one that cannot be decoded", map[string]string{"10-a.conf": `{`, "20-b.conf": `{"name": "b", "type": "bridge"}`}, "", "could not be decoded"},
		{"a name that leads out", map[string]string{"10-a.conf": `{"name": "../networks/a", "type": "bridge"}`}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.must(os.RemoveAll(n.path("net.d")))
			n.makeDir("net.d")
			for name, text := range tt.confs {
				n.write("net.d/"+name, text)
			}
			var own []string
			s := n.settings()
			s.Networks = []string{"named"}
			n.write("networks/named/10.0.0.1", id)
			n.write("networks/podman1/10.0.0.1", id)
			for _, name := range []string{"a", "b"} {
				n.write("networks/"+name+"/10.0.0.1", id)
			}
			listed := 0
			for pool, err := range New(s).List(t.Context()) {
				var broken *ipam.ObjectError
				if err != nil {
					if !errors.As(err, &broken) {
						t.Error(err)
					}
					continue
				}
				listed++
				name, by := pool.Name[strings.LastIndex(pool.Name, "/")+1:], pool.Allocations[0].Protected
				switch {
				case name == "named" && by == "":
				case by == "":
					own = append(own, name)
				case !strings.HasPrefix(by, "network "+name+" ") || !strings.Contains(by, "backends.hostlocal.networks"):
					t.Errorf("%s is held because %q", name, by)
				case name == "a" && !strings.Contains(by, tt.held):
					t.Errorf("%s is held because %q, want a word of %q", name, by, tt.held)
				}
			}
			if listed != 4 {
				t.Errorf("%d networks were listed, want 4", listed)
			}
			if got := strings.Join(own, " "); got != tt.own {
				t.Errorf("the runtime's are %q, want %q", got, tt.own)
			}
		})
	}
}

// The dataDir of a configuration is also a data folder, and its ranges are those of the pool.
func TestConfigurationSaysWhereAndHowMany(t *testing.T) {
	n := newNode(t)
	n.write("net.d/10-pods.conflist", `{"name": "pods", "plugins": [{"type": "ptp", "ipam": {"type": "host-local", "dataDir": "`+n.path("other")+`",
		"ranges": [[{"subnet": "fd00::/64"}], [{"subnet": "10.1.0.0/27", "rangeStart": "10.1.0.10"}]]}}]}`)
	n.write("other/pods/10.1.0.11", id)
	n.write("other/results/x", "nothing of host-local")
	pools, errs := n.list()
	pool := pools[n.path("other/pods")]
	if len(errs) != 0 || len(pools) != 1 || pool.Range.String() != "10.1.0.0/27" || pool.Capacity.String() != "21" || pool.Protected != "" {
		t.Errorf("%d pools, errors %v, %+v", len(pools), errs, pool)
	}
	networks, err := New(n.settings()).Survey(t.Context(), []ipam.Pool{pool})
	if err != nil || len(networks) != 1 || !networks[0].Known || networks[0].Usable.Count().String() != "21" {
		t.Errorf("Survey = %+v, %v", networks, err)
	}
}

// Promise 7. Every folder with leases is a network, also if its size is unknown. What the configuration leaves
// to flannel is in flannel's file, or in what its plugin saved for the newest lease.
func TestRangeThatFlannelChose(t *testing.T) {
	const plain, delegating = `{"type": "flannel"}`, `{"type": "flannel", "delegate": {"isDefaultGateway": true}}`
	const canal = `{"type": "calico", "ipam": {"type": "host-local", "ranges": [[{"subnet": "usePodCidr"}], [{"subnet": "usePodCidrIPv6"}]]}}`
	const bridge = `{"type": "bridge", "ipam": {"type": "host-local"}}`
	const env = "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\nFLANNEL_IPV6_NETWORK=fd00::/48\nFLANNEL_IPV6_SUBNET=fd00:0:0:1::1/64\nFLANNEL_MTU=1450\n"
	ranges := func(network, subnet string) string {
		return `{"name": "` + network + `", "type": "bridge", "ipam": {"type": "host-local", "ranges": [[{"subnet": "` + subnet + `"}]]}}`
	}
	older := strings.Repeat("0", len(id))
	for _, tt := range []struct {
		name, plugin string
		files        map[string]string
		want         string // the range; empty: unknown
	}{
		{"flannel's file", plain, map[string]string{"flannel/subnet.env": env}, "10.244.1.0/24"},
		{"of a delegate", delegating, map[string]string{"flannel/subnet.env": env}, "10.244.1.0/24"},
		{"of canal", canal, map[string]string{"flannel/subnet.env": env}, "10.244.1.0/24"},
		{"a cluster of IPv6", plain, map[string]string{"flannel/subnet.env": "FLANNEL_IPV6_SUBNET=fd00:0:0:1::1/64"}, "fd00:0:0:1::/64"},
		{"saved", delegating, map[string]string{"cache/flannel/" + id: ranges("pods", "10.244.2.0/24"), "cache/flannel/" + older: ranges("pods", "10.9.0.0/24")}, "10.244.2.0/24"},
		{"saved, as before 0.8", plain, map[string]string{"cache/flannel/" + id: `{"name": "pods", "ipam": {"type": "host-local", "subnet": "10.244.2.0/24"}}`}, "10.244.2.0/24"},
		{"saved for another network", plain, map[string]string{"cache/flannel/" + id: ranges("lan", "10.244.2.0/24")}, ""},
		{"saved for no lease", canal, map[string]string{"cache/flannel/" + strings.Repeat("1", len(id)): ranges("pods", "10.244.2.0/24")}, ""},
		{"both", plain, map[string]string{"flannel/subnet.env": env, "cache/flannel/" + id: ranges("pods", "10.244.2.0/24")}, "10.244.1.0/24"},
		{"none", delegating, nil, ""},
		{"no subnet", plain, map[string]string{"flannel/subnet.env": "FLANNEL_SUBNET=\n"}, ""},
		{"a folder", plain, map[string]string{"flannel/subnet.env/x": ""}, ""},
		{"not flannel's", bridge, map[string]string{"flannel/subnet.env": env}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.write("net.d/10-pods.conflist", `{"name": "pods", "plugins": [`+tt.plugin+`, {"type": "portmap"}]}`)
			n.since = 2 * time.Hour
			n.write("networks/pods/10.244.1.2", older)
			n.since = time.Hour
			n.write("networks/pods/10.244.1.3", id)
			n.write("networks/podman/10.88.0.2", id)
			for name, content := range tt.files {
				n.write(name, content)
			}
			pools, errs := n.list()
			if len(errs) > 0 || pools[n.path("networks/pods")].Range.IsValid() {
				t.Errorf("errors %v; what decides has the range %v", errs, pools[n.path("networks/pods")].Range)
			}
			b := New(n.settings())
			b.flannelDir = n.path("flannel")
			networks, err := b.Survey(t.Context(), slices.Collect(maps.Values(pools)))
			got := make(map[string]string)
			for _, network := range networks {
				got[network.Name] = ""
				if network.Known {
					got[network.Name] = network.Range.String()
				}
			}
			want := map[string]string{n.path("networks/pods"): tt.want, n.path("networks/podman"): ""}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("the ranges (-want +got), error %v:\n%s", err, diff)
			}
		})
	}
}

// A data folder that has two names is listed once, and is the runtime's under either.
func TestDataFolderWithTwoNames(t *testing.T) {
	n := newNode(t)
	n.must(os.Symlink(n.path("networks"), n.path("link")))
	n.write("net.d/10-pods.conflist", `{"name": "pods", "plugins": [{"type": "ptp", "ipam": {"type": "host-local", "dataDir": "`+n.path("link")+`"}}]}`)
	n.write("networks/pods/10.1.0.11", id)
	pools, errs := n.list()
	if pool := pools[n.path("networks/pods")]; len(errs) != 0 || len(pools) != 1 || pool.Protected != "" {
		t.Errorf("%d pools, errors %v, %+v", len(pools), errs, pool)
	}
}

// Promise 11. A data folder that the loaded configuration names must exist: in a pod, it might
// not be mounted. The error names the folder, since no network in it can be read. The folder of a
// plugin that is not enabled need not exist, but is listed if it does.
func TestDataFolderThatIsMissing(t *testing.T) {
	for enabled, missing := range map[string]bool{`"true"`: true, `"false"`: false, `false`: true, `null`: true} {
		n := newNode(t)
		n.write("net.d/10-aws.conflist", `{"name": "aws-cni", "plugins": [{"type": "aws-cni"}, {"type": "egress-cni", "enabled": `+enabled+`,
			"ipam": {"type": "host-local", "ranges": [[{"subnet": "fd00::ac:00/118"}]], "dataDir": "`+n.path("egress-v6-ipam")+`"}}, {"type": "portmap"}]}`)
		n.must(os.Remove(n.path("net.d/10-pods.conflist")))
		var broken *ipam.PoolError
		if _, errs := n.list(); missing != (len(errs) == 1 && errors.As(errs[0], &broken) && broken.Pool == n.path("egress-v6-ipam") && broken.Network == broken.Pool) || !missing && len(errs) > 0 {
			t.Errorf("enabled: %s: the errors are %v, want one: %v", enabled, errs, missing)
		}
		n.write("egress-v6-ipam/aws-cni/fd00::ac:2", id)
		pools, errs := n.list()
		if pool := pools[n.path("egress-v6-ipam/aws-cni")]; len(errs) != 0 || len(pool.Allocations) != 1 || pool.Protected != "" {
			t.Errorf("enabled: %s: with the folder, there are the errors %v and %+v", enabled, errs, pool)
		}
	}
}
