package hostlocal

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// What is in a folder beside leases is listed as unreadable or left out, and never followed.
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
	n.makePipe("networks/a/10.97.0.7")
	n.must(os.Symlink(n.path("networks/a"), n.path("networks/b")))
	pools, errs := n.list()
	var got []string
	for _, a := range pools[n.path("networks/a")].Allocations {
		got = append(got, a.Key+": "+a.Unreadable)
	}
	want := []string{
		"foo.bak: its name is no address in the form that the plugin writes",
		"10.97.0.1: ",
		"10.97.0.2: the file is empty: an ADD is going on, or its write failed",
		"10.97.0.3: the file has 1025 bytes, and the plugin writes at most 1024",
		"10.97.0.4: it is not a regular file, but a folder",
		"10.97.0.5: it is not a regular file, but a symbolic link",
		"10.97.0.6: it is not a regular file, but a symbolic link",
		"10.97.0.7: it is not a regular file, but a pipe",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	wantErr := n.path("networks/b") + ": it is not a folder, but a symbolic link, which is not followed"
	if len(pools) != 1 || len(errs) != 1 || errs[0].Error() != wantErr {
		t.Errorf("%d pools, errors %v, want 1 and %q", len(pools), errs, wantErr)
	}
}

// Two addresses of one attachment are one group, and those of another network are not.
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
	owner := reaper.Owner{Pod: reaper.PodRef{Namespace: "ns", Name: "pod"}, UID: "u", Sandbox: id, Interface: "eth0"}
	for _, tt := range []struct {
		name  string
		young string // the file that is young
		netns string
		since time.Duration
		pod   reaper.PodRef
	}{
		{"the lease", "networks/a/10.97.0.1", "", time.Minute, owner.Pod},
		{"libcni's cache", "entry", "", time.Minute, owner.Pod},
		{"the network namespace", "netns/cni-1", "netns/cni-1", time.Minute, owner.Pod},
		{"a network namespace that is gone", "other", "netns/cni-2", time.Hour, owner.Pod},
		{"none", "other", "netns/cni-1", time.Hour, owner.Pod},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t)
			n.write("networks/a/10.97.0.1", id+"\r\neth0")
			n.write("netns/cni-1", "")
			if tt.netns != "" {
				n.netns = n.path(tt.netns)
			}
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
			if age := time.Since(a.Created); age < tt.since-time.Second || age > tt.since+30*time.Second || a.Owner.Pod != tt.pod {
				t.Errorf("it is %v old and of %v, want %v and %v", age, a.Owner.Pod, tt.since, tt.pod)
			}
		})
	}
}

// The entry of another attachment, and one that cannot be decoded, name no pod. Their time
// counts nevertheless.
func TestStrangeCacheEntriesNameNoPod(t *testing.T) {
	for name, content := range map[string]string{
		"no JSON": "x", "a result of libcni before 0.8": `{"cniVersion": "0.3.1", "ips": []}`, "another container": `{"kind": "cniCacheV1",
			"containerId": "other", "ifName": "eth0", "networkName": "a", "cniArgs": [["K8S_POD_NAMESPACE", "ns"], ["K8S_POD_NAME", "pod"]]}`,
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.write("networks/a/10.97.0.1", id+"\r\neth0")
			n.since = time.Minute
			n.write("cache/results/a-"+id+"-eth0", content)
			pools, _ := n.list()
			a := pools[n.path("networks/a")].Allocations[0]
			if a.Owner.Pod != (reaper.PodRef{}) || time.Since(a.Created) > 30*time.Minute {
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

func TestNoDataFolderIsNoStore(t *testing.T) {
	n := newNode(t)
	n.must(os.RemoveAll(n.path("networks")))
	if _, errs := n.list(); len(errs) != 1 || !errors.Is(errs[0], reaper.ErrNotInstalled) {
		t.Errorf("the errors are %v, want ErrNotInstalled", errs)
	}
}

// Promise 2. A listing that ends early is an error, also between two folders.
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
