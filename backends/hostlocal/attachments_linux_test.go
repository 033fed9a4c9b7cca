package hostlocal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// attachmentsOf returns what the backend knows of the container id.
func (n *node) attachmentsOf() []ipam.Attachment {
	n.Helper()
	b, ok := n.Backend().(ipam.Attacher)
	if !ok {
		n.Fatal("the backend is no ipam.Attacher")
	}
	all, err := b.Attachments(n.Context(), []string{id})
	n.must(err)
	return all
}

// entryWith returns an entry of the container id on eth0, with more fields.
func entryWith(network, more string) string {
	return fmt.Sprintf(`{"kind": "cniCacheV1", "containerId": %q, "ifName": "eth0", "networkName": %q, %s}`, id, network, more)
}

// Promise 1, 2. The result of an ADD has the addresses of a sandbox, in any version of CNI. One that
// cannot be decoded is none without addresses.
func TestAddressesInTheCache(t *testing.T) {
	result := func(text string) string { return entryWith("a", `"result": `+text) }
	for _, tt := range []struct{ name, content, want string }{
		{"0.1", result(`{"ip4": {"ip": "10.1.0.5/24"}, "ip6": {"ip": "fd00::5/64"}}`), "10.1.0.5 fd00::5"},
		{"0.2", result(`{"cniVersion": "0.2.0", "ip4": {"ip": "10.1.0.5/24"}}`), "10.1.0.5"},
		{"0.3", result(`{"cniVersion": "0.3.1", "ips": [{"version": "4", "address": "10.1.0.5/24"}, {"version": "6", "address": "fd00::5/64"}]}`), "10.1.0.5 fd00::5"},
		{"1.0", result(`{"cniVersion": "1.0.0", "ips": [{"address": "10.1.0.5/24"}]}`), "10.1.0.5"},
		{"1.1", result(`{"cniVersion": "1.1.0", "ips": [{"address": "10.1.0.5/24"}], "interfaces": [{"name": "eth0", "mtu": 1500}]}`), "10.1.0.5"},
		{"mapped to IPv6", result(`{"cniVersion": "1.0.0", "ips": [{"address": "::ffff:10.1.0.5/120"}]}`), "10.1.0.5"},
		{"no addresses", result(`{"cniVersion": "1.0.0", "interfaces": [{"name": "eth0"}]}`), ""},
		{"nothing at all", result(`{}`), ""},

		{"an unknown version", result(`{"cniVersion": "9.0.0", "ips": [{"address": "10.1.0.5/24"}]}`), "unreadable"},
		{"another form", result(`{"cniVersion": "1.0.0", "ips": {"address": "10.1.0.5/24"}}`), "unreadable"},
		{"no address", result(`{"cniVersion": "1.0.0", "ips": [{"address": "10.1.0/24"}]}`), "unreadable"},
		{"an empty address", result(`{"cniVersion": "1.0.0", "ips": [{}]}`), "unreadable"},
		{"an empty address of 0.2", result(`{"ip4": {}}`), "unreadable"},
		{"null for an address", result(`{"cniVersion": "1.0.0", "ips": [null]}`), "unreadable"},
		{"null for an address of 0.3", result(`{"cniVersion": "0.3.1", "ips": [null]}`), "unreadable"},
		{"null", result(`null`), "unreadable"},
		{"no result", entryWith("a", `"netns": "x"`), "unreadable"},
		{"another network", entryWith("b", `"result": {}`), "unreadable"},
		{"a result of libcni before 0.8", `{"cniVersion": "0.3.1", "ips": []}`, "unreadable"},
		{"half an entry", result(`{"cniVersion": "1.0.0"`), "unreadable"},
		{"an empty file", "", "unreadable"},
		{"a large file", result(`"` + strings.Repeat(" ", maxCached) + `"`), "unreadable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.write("cache/results/a-"+id+"-eth0", tt.content)
			all := n.attachmentsOf()
			if len(all) != 1 {
				t.Fatalf("%d attachments, want 1", len(all))
			}
			var got []string
			for _, ip := range all[0].IPs {
				got = append(got, ip.String())
			}
			if all[0].Unreadable != "" {
				got = append(got, "unreadable")
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("it has %q (%s), want %q", text, all[0].Unreadable, tt.want)
			}
		})
	}
}

// The cache has three folders, and entries of other sandboxes, which are not read. The configuration of
// the ADD says where host-local has the addresses, if it gave them.
func TestAttachmentsOfASandbox(t *testing.T) {
	n := newNode(t)
	one := netip.MustParseAddr("10.1.0.5")
	folder := func(dataDir string) []ipam.PoolRef {
		return []ipam.PoolRef{{Backend: Name, Name: n.path(dataDir + "/a")}}
	}
	var want []ipam.Attachment
	for _, tt := range []struct {
		dir, ifname, config string
		pools               []ipam.PoolRef
	}{
		{"results", "eth0", `{"name": "a", "plugins": [{"type": "bridge", "ipam": {"type": "host-local"}}, {"type": "portmap"}]}`, folder("networks")},
		{"multus/results", "net1", `{"name": "a", "type": "macvlan", "ipam": {"type": "host-local", "dataDir": "` + n.path("other") + `"}}`, folder("other")},
		{"cache/results", "net2", `{"name": "a", "plugins": [{"type": "flannel", "delegate": {"bridge": "cni0"}}]}`, folder("networks")},
		{"results", "net3", `{"name": "a", "plugins": [{"type": "calico", "ipam": {"type": "calico-ipam"}}]}`, nil},
		{"results", "net4", `{"name": "../a", "plugins": [{"type": "bridge", "ipam": {"type": "host-local"}}]}`, nil},
		{"results", "net5", `no JSON`, nil},
		{"results", "x-lo", `{"name": "a"}`, nil},
	} {
		file := "cache/" + tt.dir + "/a-" + id + "-" + tt.ifname
		n.write(file, strings.Replace(entryWith("a", `"config": "`+base64.StdEncoding.EncodeToString([]byte(tt.config))+`",
			"result": {"cniVersion": "1.0.0", "ips": [{"address": "10.1.0.5/24"}]}`), "eth0", tt.ifname, 1))
		want = append(want, ipam.Attachment{Sandbox: id, Interface: tt.ifname, IPs: []netip.Addr{one}, File: n.path(file), Pools: tt.pools})
	}
	n.makeDir("cache/results/a-" + id + "-net6")
	want = append(want, ipam.Attachment{Sandbox: id, Interface: "net6", File: n.path("cache/results/a-" + id + "-net6"), Unreadable: "it is not an entry of libcni for this sandbox"})
	n.write("cache/results/cni-loopback-"+id+"-lo", "no JSON")
	n.write("cache/results/a-"+strings.Repeat("0", len(id))+"-eth0", "no JSON")
	byName := cmpopts.SortSlices(func(a, b ipam.Attachment) bool { return a.Interface < b.Interface })
	if diff := cmp.Diff(want, n.attachmentsOf(), byName, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("attachments (-want +got):\n%s", diff)
	}
}

// Promise 2. A cache that cannot be listed says nothing about any sandbox. One that is not there has no
// entries.
func TestCacheThatCannotBeListedIsAnError(t *testing.T) {
	n := newNode(t)
	n.must(os.RemoveAll(n.path("cache/multus/results")))
	if all := n.attachmentsOf(); len(all) > 0 {
		t.Errorf("it has %v", all)
	}
	n.write("cache/multus/results", "a file")
	if _, err := New(n.settings()).Attachments(t.Context(), []string{id}); err == nil || errors.Is(err, ipam.ErrNotInstalled) {
		t.Errorf("Attachments = %v, want an error that is not about a missing cache", err)
	}
}

// Promise 7. A node without any of the folders has no cache, and the error names the folders.
func TestNodeWithoutACache(t *testing.T) {
	folders := []string{"cache/results", "cache/multus/results", "cache/cache/results"}
	for _, there := range append(folders, "") {
		n := newNode(t)
		for _, folder := range folders {
			n.must(os.RemoveAll(n.path(folder)))
		}
		if there != "" {
			n.makeDir(there)
		}
		_, err := New(n.settings()).Attachments(t.Context(), []string{id})
		if there != "" {
			n.must(err)
			continue
		}
		want := fmt.Sprintf("no claim by libcni's cache: none of %s, %s, %s exists", n.path(folders[0]), n.path(folders[1]), n.path(folders[2]))
		if !errors.Is(err, ipam.ErrNotInstalled) || err.Error() != want {
			t.Errorf("Attachments = %v, want %s", err, want)
		}
	}
}
