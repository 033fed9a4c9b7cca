package kit_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

const node = "node-1"

var (
	pool4 = netip.MustParsePrefix("10.30.0.0/24")
	pool6 = netip.MustParsePrefix("fd30::/112")

	equalAddrs = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
)

// ready makes the node, an IPv4 pool with blocks of 16 addresses and an IPv6
// pool with blocks of 64.
func ready(t *testing.T, d *calico.Datastore) {
	t.Helper()
	must(t, d.CreateNode(t.Context(), node))
	must(t, d.ApplyPool(t.Context(), "four", pool4, 28))
	must(t, d.ApplyPool(t.Context(), "six", pool6, 122))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func add(t *testing.T, d *calico.Datastore, s calico.Sandbox) []netip.Addr {
	t.Helper()
	ips, err := d.Add(t.Context(), s)
	must(t, err)
	return ips
}

// blocks returns the blocks, which must be sound.
func blocks(t *testing.T, d *calico.Datastore) map[string]calico.Object {
	t.Helper()
	list, err := d.List(t.Context(), calico.Block)
	must(t, err)
	for name, o := range list {
		if err := calico.Invariants(o.Content); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	return list
}

func handles(t *testing.T, d *calico.Datastore) []string {
	t.Helper()
	list, err := d.List(t.Context(), calico.Handle)
	must(t, err)
	var names []string
	for name := range list {
		names = append(names, name)
	}
	return names
}

func TestAddDelOfCalico(t *testing.T) {
	calico.EachT(t, func(t *testing.T, d *calico.Datastore) {
		ready(t, d)
		web, db := calico.NewSandbox("shop", "web-0", node), calico.NewSandbox("shop", "db-0", node)
		first := add(t, d, web)
		add(t, d, db)
		if len(first) != 1 || !pool4.Contains(first[0]) {
			t.Fatalf("address %v, want one of %s", first, pool4)
		}
		cidr := netip.PrefixFrom(first[0], 28).Masked()
		name := d.BlockName(cidr)
		block, ok := blocks(t, d)[name]
		if !ok || !strings.Contains(block.Content, `"`+web.Handle()+`"`) {
			t.Errorf("block %s is %q, want it to have %s", name, block.Content, web.Handle())
		}
		if _, err := d.Get(t.Context(), calico.Affinity, d.AffinityName(node, cidr)); err != nil {
			t.Error(err)
		}
		if _, err := d.Get(t.Context(), calico.Handle, d.HandleName(web.Handle())); err != nil {
			t.Error(err)
		}

		must(t, d.Del(t.Context(), web))
		must(t, d.Del(t.Context(), web)) // the second time there is nothing
		if got := blocks(t, d)[name].Content; strings.Contains(got, web.Handle()) || !strings.Contains(got, db.Handle()) {
			t.Errorf("after the DEL of %s: %s, want %s alone", web.Handle(), got, db.Handle())
		}
		if diff := cmp.Diff([]string{d.HandleName(db.Handle())}, handles(t, d)); diff != "" {
			t.Errorf("handles (-want +got):\n%s", diff)
		}
	})
}

func TestBothFamiliesHaveOneHandle(t *testing.T) {
	calico.EachT(t, func(t *testing.T, d *calico.Datastore) {
		ready(t, d)
		s := calico.NewSandbox("shop", "web-0", node)
		s.IPv4, s.IPv6, s.Network = true, true, "two-families"
		ips := add(t, d, s)
		if len(ips) != 2 || !pool4.Contains(ips[0]) || !pool6.Contains(ips[1]) {
			t.Fatalf("addresses %v, want one of %s and one of %s", ips, pool4, pool6)
		}
		if n := len(blocks(t, d)); n != 2 {
			t.Errorf("%d blocks, want 2", n)
		}
		if diff := cmp.Diff([]string{d.HandleName("two-families." + s.ContainerID)}, handles(t, d)); diff != "" {
			t.Errorf("handles (-want +got):\n%s", diff)
		}
		for i, bits := range []int{28, 122} {
			cidr := netip.PrefixFrom(ips[i], bits).Masked()
			if _, err := d.Get(t.Context(), calico.Block, d.BlockName(cidr)); err != nil {
				t.Error(err)
			}
			if _, err := d.Get(t.Context(), calico.Affinity, d.AffinityName(node, cidr)); err != nil {
				t.Error(err)
			}
		}
		must(t, d.Del(t.Context(), s))
		if got := handles(t, d); len(got) > 0 {
			t.Errorf("handles %v after the DEL, want none", got)
		}
	})
}

func TestAddOfAFixedAddress(t *testing.T) {
	calico.EachT(t, func(t *testing.T, d *calico.Datastore) {
		ready(t, d)
		s := calico.NewSandbox("shop", "web-0", node)
		s.IP = netip.MustParseAddr("10.30.0.77")
		if diff := cmp.Diff([]netip.Addr{s.IP}, add(t, d, s), equalAddrs); diff != "" {
			t.Errorf("addresses (-want +got):\n%s", diff)
		}
		second := calico.NewSandbox("shop", "web-1", node)
		second.IP = s.IP
		_, err := d.Add(t.Context(), second)
		var answer *plugin.Error
		if !errors.As(err, &answer) || !strings.Contains(answer.Msg, "already exists") {
			t.Errorf("ADD of the same address: %v, want a %T that it already exists", err, answer)
		}
	})
}

func TestConcurrentAddsOfCalicoGetAddressesOfTheirOwn(t *testing.T) {
	calico.EachT(t, func(t *testing.T, d *calico.Datastore) {
		ready(t, d)
		must(t, d.CreateNode(t.Context(), "node-2"))
		var sandboxes []calico.Sandbox
		for i := range 12 {
			sandboxes = append(sandboxes, calico.NewSandbox("shop", fmt.Sprintf("web-%d", i), fmt.Sprintf("node-%d", 1+i%2)))
		}
		seen := map[netip.Addr]bool{}
		for i, answer := range d.AddAll(t.Context(), 4, sandboxes) {
			if answer.Err != nil || answer.Sandbox != sandboxes[i] || len(answer.IPs) != 1 || seen[answer.IPs[0]] {
				t.Fatalf("answer %d: %+v, want an address of its own for %+v", i, answer, sandboxes[i])
			}
			seen[answer.IPs[0]] = true
		}
		if n := len(blocks(t, d)); n != 2 {
			t.Errorf("%d blocks, want one for each node", n)
		}
	})
}

// It is the other half of Calico's CNI plugin, the one that makes interfaces,
// which asks whether the datastore is ready.
func TestLockIsInTheClusterInformationAlone(t *testing.T) {
	calico.EachT(t, func(t *testing.T, d *calico.Datastore) {
		ready(t, d)
		before, err := d.Dump(t.Context())
		must(t, err)
		must(t, d.Lock(t.Context()))
		locked, err := d.Dump(t.Context())
		must(t, err)
		for name := range locked {
			changed := before[name] != locked[name]
			if is := strings.HasSuffix(name, "clusterinformations/default"); is != changed {
				t.Errorf("%s was %s and is %s", name, before[name], locked[name])
			}
		}
		add(t, d, calico.NewSandbox("shop", "web-0", node))
		must(t, d.Unlock(t.Context()))
	})
}

func TestContainerIDsAreNew(t *testing.T) {
	ids := []string{calico.NewContainerID(), calico.NewContainerID()}
	if len(ids[0]) != 64 || slices.Contains(ids[1:], ids[0]) {
		t.Errorf("container IDs %v, want two of 64 digits", ids)
	}
}
