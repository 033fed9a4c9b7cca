package kit_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
)

func TestNamesAreCalicos(t *testing.T) {
	d := calico.KubernetesT(t)
	e := calico.EtcdT(t)
	four, six := netip.MustParsePrefix("10.0.0.0/26"), netip.MustParsePrefix("fd80:24e2::/122")
	for _, tt := range []struct{ got, want string }{
		{d.BlockName(four), "10-0-0-0-26"},
		{d.BlockName(six), "fd80-24e2---122"},
		{d.HandleName("lb-AbC"), "lb-abc"},
		{d.AffinityName("node-1", four), "node-1-10-0-0-0-26"},
		{e.BlockName(four), "/calico/ipam/v2/assignment/ipv4/block/10.0.0.0-26"},
		{e.BlockName(six), "/calico/ipam/v2/assignment/ipv6/block/fd80:24e2::-122"},
		{e.HandleName("lb-AbC"), "/calico/ipam/v2/handle/lb-AbC"},
		{e.AffinityName("node-1", six), "/calico/ipam/v2/host/node-1/ipv6/block/fd80:24e2::-122"},
	} {
		if tt.got != tt.want {
			t.Errorf("name %q, want %q", tt.got, tt.want)
		}
	}
}

func TestPutKeepsEveryDigit(t *testing.T) {
	calico.EachT(t, func(t *testing.T, d *calico.Datastore) {
		ctx := t.Context()
		name := d.BlockName(netip.MustParsePrefix("10.0.0.0/31"))
		content := func(sequence string) string {
			return `{"affinity":"host:node-1","allocations":[0,null],"attributes":[{"handle_id":"h","secondary":{"node":"node-1"}}],` +
				`"cidr":"10.0.0.0/31","deleted":false,"sequenceNumber":` + sequence +
				`,"sequenceNumberForAllocation":{"0":1800000000000000001},"strictAffinity":false,"unallocated":[1]}`
		}
		must(t, d.Put(ctx, calico.Block, name, content("1800000000000000003")))
		first, err := d.Get(ctx, calico.Block, name)
		must(t, err)
		if diff := cmp.Diff(content("1800000000000000003"), first.Content); diff != "" {
			t.Errorf("content (-want +got):\n%s", diff)
		}
		must(t, d.Edit(ctx, calico.Block, name, func(b map[string]any) {
			b["sequenceNumber"] = json.Number("1800000000000000005")
		}))
		second, err := d.Get(ctx, calico.Block, name)
		must(t, err)
		if diff := cmp.Diff(content("1800000000000000005"), second.Content); diff != "" {
			t.Errorf("edited content (-want +got):\n%s", diff)
		}
		if first.Revision == second.Revision {
			t.Errorf("revision %s before and after a write", first.Revision)
		}
		if err := calico.Invariants(second.Content); err != nil {
			t.Error(err)
		}
	})
}

func TestDeletedObjectIsNotFound(t *testing.T) {
	calico.EachT(t, func(t *testing.T, d *calico.Datastore) {
		ctx := t.Context()
		cidr := netip.MustParsePrefix("10.0.0.0/26")
		must(t, d.PutHandle(ctx, "Mixed.Case", map[netip.Prefix]int{cidr: 2}))
		must(t, d.PutAffinity(ctx, node, cidr, "pending"))
		for kind, name := range map[calico.Kind]string{
			calico.Handle: d.HandleName("Mixed.Case"), calico.Affinity: d.AffinityName(node, cidr),
		} {
			list, err := d.List(ctx, kind)
			must(t, err)
			if o, ok := list[name]; len(list) != 1 || !ok || o.Name != name {
				t.Errorf("%s: %v, want %s", kind, list, name)
			}
			must(t, d.Delete(ctx, kind, name))
			if _, err := d.Get(ctx, kind, name); !errors.Is(err, calico.ErrNotFound) {
				t.Errorf("get %s: %v, want %v", name, err, calico.ErrNotFound)
			}
			if err := d.Delete(ctx, kind, name); !errors.Is(err, calico.ErrNotFound) {
				t.Errorf("delete %s again: %v, want %v", name, err, calico.ErrNotFound)
			}
		}
	})
}

func TestVersionsOfCalicoTellAWriteFromNone(t *testing.T) {
	calico.EachT(t, func(t *testing.T, d *calico.Datastore) {
		ctx := t.Context()
		must(t, d.PutHandle(ctx, "h", map[netip.Prefix]int{netip.MustParsePrefix("10.0.0.0/26"): 2}))
		before, err := d.Versions(ctx)
		must(t, err)
		dump, err := d.Dump(ctx)
		must(t, err)
		if len(dump) != 2 || len(before) != 2 {
			t.Errorf("dump %v, versions %v, want the handle and the cluster information", dump, before)
		}
		must(t, d.PutHandle(ctx, "h", map[netip.Prefix]int{netip.MustParsePrefix("10.0.0.0/26"): 1}))
		after, err := d.Versions(ctx)
		must(t, err)
		for name, version := range after {
			if changed := before[name] != version; changed != strings.HasSuffix(name, "h") {
				t.Errorf("version of %s was %q and is %q", name, before[name], version)
			}
		}
	})
}

func TestLooseCRDsKeepFieldsOfLaterVersions(t *testing.T) {
	d := calico.KubernetesT(t)
	const content = `{"affinityClaimTime":"2026-01-01T00:00:00Z","allocations":[0,null],` +
		`"attributes":[{"alternateOwnerAttrs":{"pod":"b"},"handle_id":"h","releasedAt":"2026-01-01T00:00:00Z"}],` +
		`"cidr":"10.0.0.0/31","later":[1.5,"x"],"sequenceNumber":7,"strictAffinity":false,"unallocated":[1]}`
	must(t, d.Put(t.Context(), calico.Block, "10-0-0-0-31", content))
	o, err := d.Get(t.Context(), calico.Block, "10-0-0-0-31")
	must(t, err)
	if diff := cmp.Diff(content, o.Content); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestCRDsAreThoseOfTheVersion(t *testing.T) {
	dir, err := calico.CRDs(t.Context())
	must(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "crd.projectcalico.org_ipam*.yaml"))
	must(t, err)
	if len(files) != 3 {
		t.Errorf("definitions %v, want those of blocks, handles and the configuration", files)
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
}
