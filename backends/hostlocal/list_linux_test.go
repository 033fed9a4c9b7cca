package hostlocal

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Anything else in a folder of leases is listed as unreadable or left out, and never followed.
func TestStrangeFilesAreListedAndStay(t *testing.T) {
	n := newNode(t)
	n.write("secret", id+"\r\neth0")
	n.write("networks/a/lock", "")
	n.write("networks/a/last_reserved_ip", "10.97.0.1")
	n.write("networks/a/last_reserved_ip.0", "10.97.0.1")
	n.write("networks/a/10.97.0.1", id+"\r\neth0")
	n.write("networks/a/10.97.0.2", "")
	n.write("networks/a/10.97.0.3", strings.Repeat("x", maxLease+1))
	n.write("networks/a/foo.bak", id+"\r\neth0")
	n.write("networks/a/10.97.0.4/10.97.0.9", id+"\r\neth0")
	n.must(os.Symlink(n.path("secret"), n.path("networks/a/10.97.0.5")))
	n.must(os.Symlink("10.97.0.1", n.path("networks/a/10.97.0.6")))
	n.must(syscall.Mkfifo(n.path("networks/a/10.97.0.7"), 0o600)) // opening it would wait for a writer
	n.must(os.Symlink(n.path("networks/a"), n.path("networks/b")))
	pools, errs := n.list()
	var got []string
	for _, a := range pools[n.path("networks/a")].Allocations {
		got = append(got, a.Key+": "+a.Unreadable)
		if a.Blank != (a.Key == "10.97.0.2") || a.Blank && (a.Token == "" || a.Group != "" || a.Owner != (ipam.Owner{})) {
			t.Errorf("an empty file and no other is blank, with a token and no owner; listed is %+v", a)
		}
	}
	want := []string{
		"foo.bak: its name is not an address in the plugin's form",
		"10.97.0.1: ",
		"10.97.0.2: ",
		"10.97.0.3: the file has 1025 bytes, but the plugin writes at most 1024",
		"10.97.0.4: it is a folder, not a regular file",
		"10.97.0.5: it is a symbolic link, not a regular file",
		"10.97.0.6: it is a symbolic link, not a regular file",
		"10.97.0.7: it is a pipe, not a regular file",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	wantErr := n.path("networks/b") + ": it is a symbolic link, not a folder, and is not followed"
	if len(pools) != 1 || len(errs) != 1 || errs[0].Error() != wantErr {
		t.Errorf("%d pools, errors %v, want 1 and %q", len(pools), errs, wantErr)
	}
}

// Two addresses of one attachment are one group, but not with those of another network.
func TestGroupsAreAttachments(t *testing.T) {
	n := newNode(t)
	n.write("networks/a/10.97.0.1", id+"\r\neth0")
	n.write("networks/a/fd00::1", id+"\r\neth0")
	n.write("networks/a/10.97.0.2", id+"\r\nnet1")
	n.write("networks/b/10.97.0.1", id+"\r\neth0")
	pools, _ := n.list()
	a, b := pools[n.path("networks/a")].Allocations, pools[n.path("networks/b")].Allocations
	if a[0].Group != a[2].Group || a[0].Group == a[1].Group || a[0].Group == b[0].Group || a[2].IP != netip.MustParseAddr("fd00::1") {
		t.Errorf("the groups are %q, %q, %q and %q", a[0].Group, a[1].Group, a[2].Group, b[0].Group)
	}
}

// Promise 1. The youngest evidence is the age, and the pod comes from libcni's cache.
func TestAgeIsThatOfTheYoungestEvidence(t *testing.T) {
	owner := ipam.Owner{Pod: ipam.PodRef{Namespace: "ns", Name: "pod"}, UID: "u", Sandbox: id, Interface: "eth0"}
	for _, tt := range []struct {
		name  string
		young string // the file that is young
		since time.Duration
	}{
		{"the lease", "networks/a/10.97.0.1", time.Minute},
		{"libcni's cache", "entry", time.Minute},
		{"none", "other", time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.write("networks/a/10.97.0.1", id+"\r\neth0")
			n.must(n.remember("a", owner))
			young := tt.young
			if young == "entry" {
				young = n.entry("a", owner)
			}
			n.since = time.Minute
			if young == "other" {
				n.write(young, "")
			}
			n.must(n.age(young))
			pools, _ := n.list()
			a := pools[n.path("networks/a")].Allocations[0]
			if age := time.Since(a.Created); age < tt.since-time.Second || age > tt.since+30*time.Second || a.Owner.Pod != owner.Pod {
				t.Errorf("it is %v old and of %v, want %v and %v", age, a.Owner.Pod, tt.since, owner.Pod)
			}
		})
	}
}

// Promise 1. The runtime may have lost a sandbox whose network namespace exists, no matter
// which network and folder of the cache it is known from. Promise 2. The same goes if that
// cannot be seen.
func TestNetworkNamespaceThatMayExistKeeps(t *testing.T) {
	// entry is the name and the content of an entry with more fields.
	entry := func(network, more string) (string, string) {
		return network + "-" + id + "-eth0", fmt.Sprintf(`{"kind": "cniCacheV1", "containerId": %q, "ifName": "eth0", "networkName": %q,
			"cniArgs": [["K8S_POD_NAMESPACE", "ns"], ["K8S_POD_NAME", "pod"]], %s}`, id, network, more)
	}
	const exists, gone, unknown = `"ip netns delete here"`, "", "names no network namespace that can be checked"
	for _, tt := range []struct {
		name, dir, network, more string
		beside                   string // the content of other entries of the container
		want                     string
	}{
		{"it exists", "results", "a", `"netns": "NETNS/here"`, "", exists},
		{"it is gone", "results", "a", `"netns": "NETNS/gone"`, "", gone},
		{"libcni before 1.2, and it exists", "results", "a", `"result": {"interfaces": [{"name": "veth"}, {"sandbox": "NETNS/here"}]}`, "", exists},
		{"loopback's, of containerd before 2", "results", "a", `"result": {"interfaces": [{"name": "cali1"}]}`, `{"kind": "cniCacheV1", "containerId": "ID",
			"networkName": "NETWORK", "ifName": "lo", "result": {"interfaces": [{"sandbox": "NETNS/here"}]}}`, exists},
		{"loopback's alone: no other ADD ended", "", "", "", `{"kind": "cniCacheV1", "containerId": "ID", "networkName": "NETWORK", "ifName": "lo",
			"netns": "NETNS/here", "cniArgs": [["K8S_POD_NAMESPACE", "ns"], ["K8S_POD_NAME", "pod"]]}`, gone},
		{"Multus, by the runtime's entry", "results", "multus-cni-network", `"netns": "NETNS/here"`, "", exists},
		{"Multus, by its own", "multus/results", "a", `"netns": "NETNS/here"`, "", exists},
		{"dockershim, by a process", "cache/results", "a", `"netns": "/proc/1/ns/net"`, "", unknown},
		{"dockershim, and it exists", "cache/results", "a", `"netns": "NETNS/here"`, "", exists},
		{"one that exists, and one that cannot be seen", "results", "a", `"netns": "NETNS/absent/cni-1", "result": {"interfaces": [{"sandbox": "NETNS/here"}]}`, "", exists},
		{"beside broken entries", "results", "b", `"netns": "NETNS/here"`, "x", exists},
		{"none", "results", "a", `"result": {"interfaces": [{"name": "cali1"}]}`, "", unknown},
		{"no path", "results", "a", `"result": {"interfaces": [{"sandbox": "0"}]}`, "", unknown},
		{"by a process", "results", "a", `"netns": "/proc/1/ns/net", "result": {"interfaces": [{"sandbox": "/proc/1/ns/net"}]}`, "", unknown},
		{"a folder that is not here", "results", "a", `"netns": "NETNS/absent/cni-1"`, "", "absent/cni-1 does not exist here"},
		{"a folder that is a file", "results", "a", `"netns": "NETNS/here/cni-1"`, "", "may exist: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.write("networks/a/10.97.0.1", id+"\r\neth0")
			n.write("netns/here", "")
			place := strings.NewReplacer("NETNS", n.path("netns"), "ID", id)
			name, content := entry(tt.network, tt.more)
			if tt.network != "" {
				n.write("cache/"+tt.dir+"/"+name, place.Replace(content))
			}
			for i := range 8 { // the folder may have them in any order
				if network := fmt.Sprint(i); tt.beside != "" {
					n.write("cache/results/"+network+"-"+id+"-lo", strings.ReplaceAll(place.Replace(tt.beside), "NETWORK", network))
				}
			}
			pools, errs := n.list()
			a := pools[n.path("networks/a")].Allocations[0]
			if (a.Protected != "") != (tt.want != "") || !strings.Contains(a.Protected, tt.want) || (len(errs) > 0) != (tt.beside == "x") {
				t.Errorf("it is protected by %q, want %q; errors %v", a.Protected, tt.want, errs)
			}
			if unseen := tt.want != exists && tt.want != gone; a.UntilBoot != unseen {
				t.Errorf("it is kept until a boot: %v, want %v", a.UntilBoot, unseen)
			}
			if tt.want == unknown && !strings.Contains(a.Protected, "remove "+n.path("cache/"+tt.dir+"/"+name)) {
				t.Errorf("%q does not say which entry to remove", a.Protected)
			}
			if want := (ipam.PodRef{Namespace: "ns", Name: "pod"}); a.Owner.Pod != want || a.Foreign != "" {
				t.Errorf("it is of %v and foreign because %q, want of %v", a.Owner.Pod, a.Foreign, want)
			}
		})
	}
}

// Promise 1. Another program may make containers in the network of the runtime.
func TestAddressOfAnotherProgramIsHeld(t *testing.T) {
	for _, tt := range []struct {
		name, id string
		owner    ipam.Owner // in libcni's cache, if it names an interface
		foreign  bool
	}{
		{"a sandbox", id, ipam.Owner{Pod: ipam.PodRef{Namespace: "ns", Name: "pod"}, Sandbox: id, Interface: "eth0"}, false},
		{"a container without a pod", id, ipam.Owner{Sandbox: id, Interface: "eth0"}, true},
		{"a name", "default-web", ipam.Owner{}, true},
		{"an ID in capitals", strings.ToUpper(id), ipam.Owner{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.write("networks/a/10.97.0.1", tt.id+"\r\neth0")
			if tt.owner.Interface != "" {
				n.must(n.remember("a", tt.owner))
			}
			pools, _ := n.list()
			if a := pools[n.path("networks/a")].Allocations[0]; (a.Foreign != "") != tt.foreign || a.Unreadable != "" {
				t.Errorf("it is listed as foreign because %q and unreadable because %q, want foreign: %v", a.Foreign, a.Unreadable, tt.foreign)
			}
		})
	}
}

// The entry of another attachment, and one that cannot be decoded, name no pod. Their time
// counts anyway.
func TestStrangeCacheEntriesNameNoPod(t *testing.T) {
	const args = `"cniArgs": [["K8S_POD_NAMESPACE", "ns"], ["K8S_POD_NAME", "pod"]]`
	for name, content := range map[string]string{
		"no JSON": "x", "emptied by a power cut": "", "a result of libcni before 0.8": `{"cniVersion": "0.3.1", "ips": []}`,
		"another container": `{"kind": "cniCacheV1", "containerId": "other", "ifName": "eth0", "networkName": "a", ` + args + `}`,
		"another network":   `{"kind": "cniCacheV1", "containerId": "` + id + `", "ifName": "eth0", "networkName": "b", ` + args + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.write("networks/a/10.97.0.1", id+"\r\neth0")
			n.since = time.Minute
			n.write("cache/results/a-"+id+"-eth0", content)
			pools, _ := n.list()
			a := pools[n.path("networks/a")].Allocations[0]
			if a.Owner.Pod != (ipam.PodRef{}) || a.Protected == "" || !a.UntilBoot || time.Since(a.Created) > 30*time.Minute {
				t.Errorf("it is listed as %+v", a)
			}
		})
	}
}

// Promise 2. A cache entry that cannot be read may be young, so it keeps.
func TestCacheThatCannotBeReadKeeps(t *testing.T) {
	n := newNode(t)
	n.write("networks/a/10.97.0.1", id+"\r\neth0")
	n.must(os.RemoveAll(n.path("cache/results")))
	n.write("cache/results", "a file")
	var last error
	for _, err := range n.Backend().List(t.Context()) {
		last = err
	}
	if last == nil {
		t.Error("the listing goes on without libcni's cache")
	}
}

// Promise 7. All entries that cannot be decoded are in one error, with one command, whether or not the sandbox
// has a lease. An entry that may just be written is not among them, nor a sound one, whatever its name, nor one that is too
// large to be read.
func TestDamagedEntriesAreNamedTogether(t *testing.T) {
	n := newNode(t)
	other := strings.Repeat("0", len(id))
	for _, ip := range []string{"10.97.0.1", "fd00::1"} {
		n.write("networks/a/"+ip, id+"\r\neth0")
	}
	n.must(n.remember("b", ipam.Owner{Pod: ipam.PodRef{Namespace: "ns", Name: "pod"}, Sandbox: id, Interface: "net1"}))
	n.write("cache/results/a-"+id+"-eth0", "")
	n.write("cache/multus/results/a-"+other+"-net1", "{")
	n.write("cache/results/$(reboot)-"+other+"-eth0", "")
	n.must(n.remember("x-"+other, ipam.Owner{Pod: ipam.PodRef{Namespace: "ns", Name: "pod"}, Sandbox: id, Interface: "net1"})) // sound, and named as if of both
	n.write("cache/results/large-"+other+"-eth0", strings.Repeat(" ", maxCached+1))
	n.since = 10 * time.Second
	n.write("cache/results/a-"+other+"-eth0", "")
	_, errs := n.list()
	if len(errs) != 1 {
		t.Fatalf("the errors are %v, want one", errs)
	}
	object, is := errors.AsType[*ipam.ObjectError](errs[0])
	if !is || object.NotListed != nil || !strings.HasPrefix(errs[0].Error(), "libcni's cache: 2 of its entries cannot be decoded, ") {
		t.Errorf("the error is %v", errs[0])
	}
	_, command, _ := strings.Cut(errs[0].Error(), "nothing of its pod runs: ")
	want := "rm -i " + n.path("cache/multus/results/a-"+other+"-net1") + " " + n.path("cache/results/a-"+id+"-eth0")
	if command != want {
		t.Errorf("the command is %s\nwant %s", command, want)
	}
}

// Promise 11. Networks of which libcni's cache says that host-local keeps them elsewhere are named with the line that
// adds their folders, and these are not opened: anyone may write an attachment.
func TestDataFolderThatOnlyAnAttachmentNamesIsNotListed(t *testing.T) {
	for _, tt := range []struct {
		name, dataDir string // by which an entry has it
		configured    string // another folder of the policy
		want          bool
	}{
		{"elsewhere", "elsewhere", "", true},
		{"a path that would end the line of the policy", `else"], x: [`, "", true},
		{"in the policy", "elsewhere", "elsewhere", false},
		{"by another name of a folder", "link", "", false},
		{"the default", "", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.must(os.Symlink(n.path("networks"), n.path("link")))
			n.write("elsewhere/lan/192.168.1.200", id+"\r\nnet1")
			dataDir := tt.dataDir
			if dataDir != "" {
				dataDir = n.path(dataDir)
			}
			for i, plugin := range []string{"host-local", "host-local", "whereabouts"} {
				network := []string{"lan", "lan2", "lan3"}[i]
				config, err := json.Marshal(map[string]any{"name": network, "type": "macvlan", "ipam": map[string]any{"type": plugin, "dataDir": dataDir}})
				n.must(err)
				entry, err := json.Marshal(cached{Kind: "cniCacheV1", ContainerID: id, IfName: fmt.Sprint("net", i), NetworkName: network, Config: config})
				n.must(err)
				n.write("cache/multus/results/"+network+"-"+id+"-net"+fmt.Sprint(i), string(entry))
			}
			s := n.settings()
			if tt.configured != "" {
				s.DataDirs = append(s.DataDirs, n.path(tt.configured))
			}
			n.write("net.d/10-pods.conflist", `{"name": "pods", "type": "bridge", "ipam": {"type": "calico-ipam"}}`)
			inv := ipam.TakeInventory(t.Context(), []ipam.Backend{New(s)}, func(string) bool { return false })
			l := inv.Listings[0]
			if !tt.want {
				if len(l.Undecoded) > 0 {
					t.Errorf("it is told %v", l.Undecoded)
				}
				return
			}
			if l.Status != ipam.StatusOK || len(l.Pools) > 0 || len(l.Undecoded) != 1 {
				t.Fatalf("the listing is %+v", l)
			}
			object, _ := errors.AsType[*ipam.ObjectError](l.Undecoded[0])
			if diff := cmp.Diff([]string{"lan", "lan2"}, object.NotListed); diff != "" {
				t.Errorf("networks (-want +got):\n%s", diff)
			}
			_, line, _ := strings.Cut(object.Error(), "dataDirs: ")
			var dirs []string
			n.must(yaml.Unmarshal([]byte(line), &dirs))
			if diff := cmp.Diff([]string{n.path("networks"), dataDir}, dirs); diff != "" {
				t.Errorf("dataDirs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoDataFolderIsNoStore(t *testing.T) {
	n := newNode(t)
	n.write("net.d/10-pods.conflist", `{"name": "pods", "plugins": [{"type": "flannel"}]}`)
	n.must(os.RemoveAll(n.path("networks")))
	is := func(says string) {
		t.Helper()
		if _, errs := n.list(); len(errs) != 1 || !errors.Is(errs[0], ipam.ErrNotInstalled) || !strings.Contains(errs[0].Error(), says) {
			t.Errorf("the errors are %v, want ErrNotInstalled that says %q", errs, says)
		}
	}
	is(n.path("networks"))
	n.write("cache/multus/results/lan-"+id+"-net1", `{"kind": "cniCacheV1", "containerId": "`+id+`", "networkName": "lan", "ifName": "net1", "config": "`+
		base64.StdEncoding.EncodeToString([]byte(`{"name": "lan", "ipam": {"type": "host-local", "dataDir": "/run/cni"}}`))+`"}`)
	is(`; not listed: "/run/cni/lan", `)
}

// Promise 2. A listing that ends early is an error, even between two folders.
func TestListingEndsWithItsContext(t *testing.T) {
	n := newNode(t)
	n.write("networks/a/10.97.0.1", id)
	n.write("networks/b/10.98.0.1", id)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range n.Backend().List(ctx) {
		cancel()
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("the last error is %v", last)
	}
}
