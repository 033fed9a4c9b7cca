package ipam_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Promise 2. After calico 6997: an endpoint has the address of a sandbox. One of another sandbox, or
// without the address, is not left over; but either claims it, and so does one that is not known.
func TestEndpointHasOrClaimsAnAllocation(t *testing.T) {
	ip, other := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("10.0.0.8")
	for name, tt := range map[string]struct {
		endpoint    ipam.Endpoint
		has, claims bool
	}{
		"there is none":            {},
		"it names no sandbox":      {ipam.Endpoint{Name: "e", Addresses: []netip.Addr{ip}}, false, true},
		"of the sandbox":           {ipam.Endpoint{Name: "e", Sandbox: "s1", Addresses: []netip.Addr{other, ip}}, true, true},
		"of another sandbox":       {ipam.Endpoint{Name: "e", Sandbox: "s2", Addresses: []netip.Addr{ip}}, false, true},
		"with another address":     {ipam.Endpoint{Name: "e", Sandbox: "s1", Addresses: []netip.Addr{other}}, false, true},
		"of another, with another": {ipam.Endpoint{Name: "e", Sandbox: "s2", Addresses: []netip.Addr{other}}, false, false},
		"it could not be read":     {ipam.Endpoint{Err: errors.New("no answer")}, false, true},
	} {
		a := &ipam.Allocation{IP: ip, Owner: ipam.Owner{Sandbox: "s1"}}
		if has, claims := tt.endpoint.Has(a), tt.endpoint.Claims(a); has != tt.has || claims != tt.claims {
			t.Errorf("%s: has %v, claims %v", name, has, claims)
		}
	}
}
