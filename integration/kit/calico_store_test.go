package kit_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
)

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
