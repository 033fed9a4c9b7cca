package calico

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// ipPoolOfFour contains threeOfFour.
const ipPoolOfFour = `{"metadata":{"name":"four"},"spec":{"cidr":"10.0.0.0/30","blockSize":30}}`

// reservedIn returns which of 10.0.0.0 to 10.0.0.3 pods get only if they ask for it, by the only network,
// which must say that the IPReservation reserves them; "unknown" if that is not known.
func reservedIn(t *testing.T, networks []ipam.Network, by string) string {
	t.Helper()
	if len(networks) != 1 {
		t.Fatalf("networks %+v, want one", networks)
	}
	n := networks[0]
	if !n.Known {
		return "unknown"
	}
	var got []string
	for ip := n.Range.Addr(); n.Range.Contains(ip); ip = ip.Next() {
		why := ""
		for _, w := range n.Withheld {
			if w.Addresses.Contains(ip) {
				why = w.Why
			}
		}
		if n.Usable.Contains(ip) != (why == "") || why != "" && why != "reserved by Calico's IPReservation "+by {
			t.Errorf("%s is usable: %v, and withheld: %q", ip, n.Usable.Contains(ip), why)
		}
		if why != "" {
			got = append(got, ip.String())
		}
	}
	return strings.Join(got, " ")
}

// Promise 7. An IPReservation has the addresses in its ranges and no others. Pods do not get them, and those
// that leaked are released as any other.
func TestIPReservationsAreNoCapacityAndHoldNothing(t *testing.T) {
	const all = "10.0.0.0 10.0.0.1 10.0.0.2 10.0.0.3"
	for _, tt := range []struct {
		ranges string
		want   string // the reserved among 10.0.0.0 to 10.0.0.3
		broken bool
	}{
		{ranges: ``}, {ranges: `[]`}, {ranges: `null`}, {ranges: `[" ", ""]`},
		{ranges: `["10.0.0.2/32"]`, want: "10.0.0.2"},
		{ranges: `["10.0.0.2"]`, want: "10.0.0.2"},
		{ranges: `[" 10.0.0.2/31 "]`, want: "10.0.0.2 10.0.0.3"},
		{ranges: `["10.0.0.3/31"]`, want: "10.0.0.2 10.0.0.3"},
		{ranges: `["fd00::/8", "10.0.0.0/32", "10.1.0.0/16"]`, want: "10.0.0.0"},
		{ranges: `["0.0.0.0/0"]`, want: all},
		{ranges: `["::/0"]`},
		{ranges: `["::ffff:10.0.0.2"]`, want: "10.0.0.2"}, {ranges: `["::ffff:10.0.0.2/127"]`, want: "10.0.0.2 10.0.0.3"},
		// One that cannot be decoded has the ranges that can.
		{ranges: `["10.0.0.x", "10.0.0.2"]`, want: "10.0.0.2", broken: true}, {ranges: `["10.0.0.0/33"]`, broken: true},
		{ranges: `["10.0.0.0/"]`, broken: true}, {ranges: `["all"]`, broken: true}, {ranges: `["fe80::1%eth0"]`, broken: true},
		{ranges: `["::ffff:10.0.0.0/95"]`, broken: true},
		// Without a list that can be decoded, it may mean any address.
		{ranges: `"10.0.0.2"`, want: "unknown", broken: true}, {ranges: `[7]`, want: "unknown", broken: true},
	} {
		t.Run(tt.ranges, func(t *testing.T) {
			value := `{"reservedCIDRs":` + tt.ranges + `}`
			if tt.ranges == "" {
				value = `{}`
			}
			inShapes(t, func(t *testing.T, sh shape) {
				s := newFixture(t, sh)
				s.more["ippools"] = []resource{{data: []byte(ipPoolOfFour)}}
				s.more["ipreservations"] = []resource{
					{data: []byte(`{"metadata":{"name":"other"}}`)}, {data: []byte(`{"metadata":{"name":"keep"},"spec":` + value + `}`)},
				}
				s.put(blocks, "10.0.0.0/30", threeOfFour)
				pools, objects := listObjects(t, s.backend)
				wantUnheld(t, pools)
				networks, err := s.backend.Survey(t.Context(), pools)
				if err != nil {
					t.Fatal(err)
				}
				if diff := gocmp.Diff(tt.want, reservedIn(t, networks, "keep")); diff != "" {
					t.Errorf("reserved (-want +got):\n%s", diff)
				}
				if tt.broken != (len(objects) == 1) || tt.broken && !strings.HasPrefix(objects[0].Error(), "Calico's IPReservation keep: ") {
					t.Errorf("the listing has the errors %v, want one that names the IPReservation: %v", objects, tt.broken)
				}
			})
		})
	}
}

// listObjects returns what a backend lists, and its errors, which must be about objects.
func listObjects(t *testing.T, b ipam.Backend) (pools []ipam.Pool, objects []error) {
	t.Helper()
	for pool, err := range b.List(t.Context()) {
		var object *ipam.ObjectError
		switch {
		case err == nil:
			pools = append(pools, pool)
		case errors.As(err, &object):
			objects = append(objects, err)
		default:
			t.Fatal(err)
		}
	}
	return pools, objects
}

// wantUnheld fails the test if nothing is listed, or something that is listed is held.
func wantUnheld(t *testing.T, pools []ipam.Pool) {
	t.Helper()
	listed := 0
	for _, pool := range pools {
		for _, a := range pool.Allocations {
			listed++
			if a.Protected+pool.Protected != "" {
				t.Errorf("%s is held: %q, %q", a.IP, a.Protected, pool.Protected)
			}
		}
	}
	if listed == 0 {
		t.Error("nothing is listed")
	}
}

// Promise 9. If IPReservations cannot be listed, it is unknown how full networks are. That fails no listing,
// and holds nothing.
func TestWithoutAListOfIPReservationsTheCapacityIsUnknown(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		s := newFixture(t, sh)
		s.more["ippools"] = []resource{{data: []byte(ipPoolOfFour)}}
		s.put(blocks, "10.0.0.0/30", threeOfFour)
		s.always("ipreservations", errRefused)
		pools, objects := listObjects(t, s.backend)
		wantUnheld(t, pools)
		if len(objects) != 1 || !errors.Is(objects[0], errRefused) || !strings.HasPrefix(objects[0].Error(), "Calico's IPReservations: which addresses are reserved") {
			t.Errorf("the listing has the errors %v", objects)
		}
		if pools[0].Capacity != nil {
			t.Errorf("the block gives %v addresses, want that it is unknown", pools[0].Capacity)
		}
		networks, err := s.backend.Survey(t.Context(), pools)
		if got := reservedIn(t, networks, "?"); got != "unknown" || err != nil {
			t.Errorf("reserved are %s, %v", got, err)
		}
	})
}

func TestFilesHaveIPReservations(t *testing.T) {
	for _, f := range forms {
		of := func(kind, plural, data string) ipam.Document {
			if f.name == "etcd" {
				return ipam.Document{Key: resourcePrefix + plural + "/one", Data: []byte(data)}
			}
			return ipam.Document{APIVersion: strings.TrimPrefix(f.name, "etcd"), Kind: kind, Data: []byte(data)}
		}
		stored := []ipam.Document{
			f.document(blocks, "10.0.0.0/30", threeOfFour), of("IPPool", "ippools", ipPoolOfFour),
		}
		if f.name == "etcd" {
			stored = append(stored, of("Node", "nodes", `{"metadata":{"name":"n"}}`)) // a dump that has these has all
		}
		reserving := func(ranges string) []ipam.Document {
			return []ipam.Document{of("IPReservation", "ipreservations", fmt.Sprintf(`{"metadata":{"name":"one"},"spec":{"reservedCIDRs":%s}}`, ranges))}
		}
		for name, tt := range map[string]struct {
			documents []ipam.Document
			want      string
			says      string // the beginning of the error
		}{
			"one":                       {slices.Concat(stored, reserving(`["10.0.0.2"]`)), "10.0.0.2", ""},
			"one that is partly broken": {slices.Concat(stored, reserving(`["10.0.0.2", "x"]`)), "10.0.0.2", "Calico's IPReservation one: "},
			"no list":                   {stored[:2], "unknown", "Calico's IPReservations: "},
		} {
			found := newFiles(tt.documents, 4)
			pools, objects := listObjects(t, found)
			if f.name != "etcd" || tt.want != "unknown" { // Calico's nodes are unknown, too
				wantUnheld(t, pools)
			}
			networks, err := found.Survey(t.Context(), pools)
			if got := reservedIn(t, networks, "one"); got != tt.want || err != nil {
				t.Errorf("%s, %s: reserved are %q, %v; want %q", f.name, name, got, err, tt.want)
			}
			if (len(objects) == 1) != (tt.says != "") || len(objects) == 1 && !strings.HasPrefix(objects[0].Error(), tt.says) {
				t.Errorf("%s, %s: the listing has the errors %v, want %q", f.name, name, objects, tt.says)
			}
		}
	}
}

// Promise 10. A run releases a dead allocation that an IPReservation covers, so a restore puts it back.
func TestReservedAddressIsPutBack(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		s := newFixture(t, sh)
		records := s.lose(2)
		s.more["ipreservations"] = []resource{{data: []byte(`{"metadata":{"name":"keep"},"spec":{"reservedCIDRs":["` + records[0].IP + `"]}}`)}}
		listObjects(t, s.backend)
		if got := restoreOutcomes(s.backend.Restore(t.Context(), firstBlock, records, backendtest.Permit)); got != "back back" {
			t.Errorf("Restore = %s", got)
		}
	})
}
