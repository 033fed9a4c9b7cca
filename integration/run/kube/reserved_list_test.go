package kube_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// compareReserved ignores what the API server chooses.
var compareReserved = cmp.Options{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.FilterPath(func(p cmp.Path) bool { return slices.Contains([]string{".Token", ".Stored"}, p.Last().String()) }, cmp.Ignore()),
}

func TestReservedIPsOfNamespacesAndOfTheClusterAreListed(t *testing.T) {
	f := newReservedFixture(t)
	f.write(spaced, "web-0", `"spec":{"pod":"web-0","ttl":"24h"},"status":{"ips":["10.1.0.4","FD00::4/128"],"deletedAt":"2026-01-02T15:04:05Z"}`)
	f.write(spaced, "web-1", `"spec":{"pod":"db/web-1","ttl":3600}`)
	f.write(spaced, "web-2", `"spec":{"ttl":"never"}`) // reserves nothing yet
	f.write(wide, "10.1.0.9", `"spec":{"ip":"10.1.0.9"}`)

	got := f.list(f.reserved(spaced, wide))
	want := []reservedips.ReservedIP{
		{
			Allocation: ipam.Allocation{
				Pool: spacedPool, Key: f.namespace + "/web-0", Owner: ipam.Owner{Pod: ipam.PodRef{Namespace: f.namespace, Name: "web-0"}},
			},
			Protection: ipam.Protection{
				IPs: []netip.Addr{netip.MustParseAddr("10.1.0.4"), netip.MustParseAddr("fd00::4")}, TTL: new(24 * time.Hour),
				Deleted: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC), Deletable: true,
			},
		},
		{
			Allocation: ipam.Allocation{
				Pool: spacedPool, Key: f.namespace + "/web-1", Owner: ipam.Owner{Pod: ipam.PodRef{Namespace: "db", Name: "web-1"}},
			},
			Protection: ipam.Protection{TTL: new(time.Hour), Deletable: true},
		},
		{
			Allocation: ipam.Allocation{Pool: widePool, Key: "10.1.0.9"},
			Protection: ipam.Protection{IPs: []netip.Addr{netip.MustParseAddr("10.1.0.9")}},
		},
	}
	if diff := cmp.Diff(want, got, compareReserved); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
	for _, r := range got {
		var object struct {
			Metadata struct{ UID, ResourceVersion string }
		}
		f.must(json.Unmarshal(r.Stored, &object))
		if m := object.Metadata; r.Token != m.UID+"/"+m.ResourceVersion || m.UID == "" || m.ResourceVersion == "" {
			t.Errorf("token %q of %s", r.Token, r.Stored)
		}
	}
}

// Metadata can be read too, such as since when an object has been under deletion.
func TestDeletionOfTheObjectCanBeTheDeletionOfThePod(t *testing.T) {
	f := newReservedFixture(t)
	f.write(spaced, "web-0", `"metadata":{"finalizers":["example.com/hold"]},"spec":{"pod":"web-0"}`)
	f.remove(spaced, "web-0")
	p := spaced
	p.DeletedAt = ".metadata.deletionTimestamp"
	if got := f.only(f.reserved(p)); time.Since(got.Deleted).Abs() > time.Minute {
		t.Errorf("deleted at %v, want now", got.Deleted)
	}
}

// Promise 2. Not served is not "nothing is reserved".
func TestResourceThatIsNotServedIsAnError(t *testing.T) {
	f := newReservedFixture(t)
	f.write(spaced, "web-0", `"spec":{"pod":"web-0"}`)
	p := spaced
	p.Resource.Version = "v1"
	got, err := f.reserved(spaced, p).All(t.Context())
	const want = "backends.reservedIPs.resources[1]: list reservedips.v1.network.example.com" +
		": the API server does not serve it: install it, or remove it from the policy: "
	if err == nil || !strings.HasPrefix(err.Error(), want) || got != nil {
		t.Errorf("List = %+v, %v, want %s", got, err, want)
	}
}

// A built-in resource also has protobuf, which the program uses elsewhere, and no type in its
// lists.
func TestBuiltInResourceCanReserve(t *testing.T) {
	f := newReservedFixture(t)
	p := reservedips.Resource{
		Resource: reservedips.ResourceName{Version: "v1", Resource: "configmaps"},
		Address:  ".data.reservedIP", TTL: ".data.ttl",
	}
	f.configMap("web-0", map[string]string{"reservedIP": "10.1.0.4", "ttl": "300"})
	config := rest.CopyConfig(f.Config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	r := f.reservedAs(config, p)
	before := f.only(r)
	if before.Pool != "configmaps.v1." || before.Key != f.namespace+"/web-0" || *before.TTL != 5*time.Minute {
		t.Errorf("List = %+v", before)
	}
	f.must(r.Delete(t.Context(), before))
	f.must(r.Restore(t.Context(), before.Pool, []ipam.Record{record(before)})[0])
	if diff := cmp.Diff(f.settled(before.Stored), f.settled(f.only(r).Stored)); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
}
