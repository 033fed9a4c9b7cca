package admission_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// sandbox is the ID of a sandbox.
var sandbox = strings.Repeat("0123456789abcdef", 4)

// A new key of a handle is the CIDR of a block, as Calico stores it. Another key would make each
// calico-ipam DEL of the handle's pod panic.
func TestHandlesCountInBlocksOnly(t *testing.T) {
	f := newFixture(t)
	var writes []write
	try := func(by string, keys ...string) {
		for _, key := range keys {
			patch := strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
			writes = append(writes,
				write{fmt.Sprintf("count up in %q", key), by, "patch", "handle: h1", `[{"op":"add","path":"/spec/block/` + patch + `","value":1}]`},
				write{fmt.Sprintf("create one in %q", key), by, "create", "handle: ", newHandle("k8s-pod-network."+sandbox, `"`+key+`":1`)})
		}
	}
	try("",
		"10.9.0.0/26", "10.244.16.0/20", "192.168.255.255/32", "0.0.0.0/32", "172.16.0.64/27",
		"fd80:24e2:f998:72d6::/122", "fd80:24e2::40/122", "2001:db8::1000/116", "2001:db8:1:2:3:4:5:6/128", "2001:db8:0:1:0:1:0:40/122",
		"2001:db8:0:0:1::/122", "2001:db8::1:0:0:40/122", "::/122", "::ff/128",
	)
	try("writes",
		"x", "", "10.9.0.0", "10.9.0.0/", "/26", "10.9.0.0/33", "10.9.0.0/026", "10.9.0/26", "10.9.0.0.0/26", "999.1.1.1/26", "256.0.0.0/26",
		"010.9.0.0/26", "10.09.0.0/26", " 10.9.0.0/26", "10.9.0.0/26 ", "10.9.0.0/26/1", "10-9-0-0-26", "10.9.0.1/26", "10.9.8.0/20", "10.9.0.0/19", "0.0.0.0/0",
		"1:2:3/64", "1:2:3/122", "1:2:3:4:5:6:7:8:9/128", "1:2:3:4:5:6:7/128", "1:2:3:4::5:6:7:8/128", "1:2:3:4:5:6:7::/122", "1::2::/122", ":::/122", "fd00:/122", ":fd00::/122",
		"fd00::10000/116", "fd00::g/128", "fd00::1/122", "fd00::20/122", "fd00::/115", "fd00::/64", "fd00::/129",
		"FD00::/122", "fd00::00/122", "fd00::0/122", "fd00:0::/122", "fd00:0:0:0:0:0:0:0/122", "fd00:0:0:1:0:0:0:0/122", "fd00::1:0:0:0:0/122", "::ffff:10.9.0.0/122", "fe80::%eth0/122",
	)
	f.each(reap.RestoreAccount, writes)
}

// A handle that is created is named as that of a sandbox: another one could be that of a tunnel, of
// a virtual machine or of a service to come.
func TestHandlesOfSandboxesOnlyAreCreated(t *testing.T) {
	f := newFixture(t)
	const counts = `"10.9.0.0/26":1`
	var writes []write
	for by, names := range map[string][]string{
		"": {"k8s-pod-network." + sandbox, "my.net-1." + sandbox, "k8s-pod-network.c1", "default.web-0"},
		"writes": {
			"vxlan-tunnel-addr-node-1", "vxlan-tunnel-addr-w-1.corp.example", "vxlan-v6-tunnel-addr-node-1", "ipip-tunnel-addr-w-1.corp.example",
			"wireguard-tunnel-addr-w-1.corp.example", "wireguard-v6-tunnel-addr-node-1", "vxlan-tunnel-addr-node-1." + sandbox,
			"k8s-pod-network.vmi.shop.vm-1", "windows-reserved-ipam-handle", "lb-n4bqgyhmfwwal", "k8s-pod-network", sandbox,
		},
	} {
		for _, name := range names {
			writes = append(writes, write{"create " + name, by, "create", "handle: ", newHandle(name, counts)})
		}
	}
	id := func(id string) string {
		return strings.Replace(newHandle("k8s-pod-network.c1", counts), `"handleID":"k8s-pod-network.c1"`, id, 1)
	}
	f.each(reap.RestoreAccount, append(writes, []write{
		{"create one whose ID has capitals", "", "create", "handle: ", id(`"handleID":"K8s-pod-network.C1"`)},
		{"create one of another ID", "writes", "create", "handle: ", id(`"handleID":"vxlan-tunnel-addr-node-1"`)},
		{"create one of a longer ID", "writes", "create", "handle: ", id(`"handleID":"k8s-pod-network.c1\r\neth0"`)},
		{"create one without an ID", "writes|another error", "create", "handle: ", id(`"x":"y"`)},
	}...))
}
