package run_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// compareAddresses lets cmp compare addresses.
var compareAddresses = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

func TestReservedIPsOfNamespacesAndOfTheClusterAreListed(t *testing.T) {
	f := newFixture(t)
	f.write(spaced, "web-0", `"spec":{"pod":"web-0","ttl":"24h"},"status":{"ips":["10.1.0.4","FD00::4/128"],"deletedAt":"2026-01-02T15:04:05Z"}`)
	f.write(spaced, "web-1", `"spec":{"pod":"db/web-1","ttl":3600}`)
	f.write(spaced, "web-2", `"spec":{"ttl":"never"}`) // reserves nothing yet
	f.write(clusterWide, "10.1.0.9", `"spec":{"ip":"10.1.0.9"}`)

	const spacedName, wideName = "reservedips.v1alpha1.network.example.com ", "clusterreservedips.v1alpha1.network.example.com "
	want := []ipam.Protection{
		{
			Name: spacedName + home + "/web-0", Pod: ipam.PodRef{Namespace: home, Name: "web-0"},
			IPs: []netip.Addr{netip.MustParseAddr("10.1.0.4"), netip.MustParseAddr("fd00::4")}, TTL: new(24 * time.Hour),
			Deleted: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC),
		},
		{Name: spacedName + home + "/web-1", Pod: ipam.PodRef{Namespace: "db", Name: "web-1"}, TTL: new(time.Hour)},
		{Name: wideName + "10.1.0.9", IPs: []netip.Addr{netip.MustParseAddr("10.1.0.9")}},
	}
	if diff := cmp.Diff(want, f.list(f.reserved(spaced, clusterWide)), compareAddresses); diff != "" {
		t.Errorf("Protections (-want +got):\n%s", diff)
	}
}

// Metadata can be read too, such as since when an object has been under deletion.
func TestDeletionOfTheObjectCanBeTheDeletionOfThePod(t *testing.T) {
	f := newFixture(t)
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
	f := newFixture(t)
	f.write(spaced, "web-0", `"spec":{"pod":"web-0"}`)
	p := spaced
	p.Resource.Version = "v1"
	got, err := f.reserved(spaced, p).Protections(t.Context())
	const want = "backends.reservedIPs.resources[1]: list reservedips.v1.network.example.com" +
		": the API server does not serve it: install it, or remove it from the policy: "
	if err == nil || !strings.HasPrefix(err.Error(), want) || got != nil {
		t.Errorf("Protections = %+v, %v, want %s", got, err, want)
	}
}

// A built-in resource also has protobuf, which the program uses elsewhere, and no type in its
// lists.
func TestBuiltInResourceCanReserve(t *testing.T) {
	f := newFixture(t)
	p := reservedips.Resource{
		Resource: reservedips.ResourceName{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
		Address:  ".metadata.annotations.ip", TTL: ".metadata.annotations.ttl",
	}
	_, err := f.Kube.CoordinationV1().Leases(home).Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "web-0", Annotations: map[string]string{"ip": "10.1.0.4", "ttl": "300"}},
	}, metav1.CreateOptions{})
	f.must(err)
	config := rest.CopyConfig(f.Config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if got := f.only(f.reservedAs(config, p)); got.Name != "leases.v1.coordination.k8s.io "+home+"/web-0" || *got.TTL != 5*time.Minute {
		t.Errorf("Protections = %+v", got)
	}
}
