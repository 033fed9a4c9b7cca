package calico

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// An IPReservation protects the addresses in its ranges and no others.
func TestIPReservationsProtectAddresses(t *testing.T) {
	const protection = "Calico's IPReservation keep"
	for _, tt := range []struct {
		ranges string
		want   string // the protections of 10.0.0.0, .2 and .3
	}{
		{``, "||"}, {`[]`, "||"}, {`null`, "||"}, {`[" ", ""]`, "||"},
		{`["10.0.0.2/32"]`, "|" + protection + "|"},
		{`["10.0.0.2"]`, "|" + protection + "|"},
		{`[" 10.0.0.2/31 "]`, "|" + protection + "|" + protection},
		{`["10.0.0.3/31"]`, "|" + protection + "|" + protection},
		{`["fd00::/8", "10.0.0.0/32", "10.1.0.0/16"]`, protection + "||"},
		{`["0.0.0.0/0"]`, protection + "|" + protection + "|" + protection},
		{`["::/0"]`, "||"},
		{`["::ffff:10.0.0.2"]`, "|" + protection + "|"}, {`["::ffff:10.0.0.2/127"]`, "|" + protection + "|" + protection},
		// One that cannot be decoded protects the ranges that can.
		{`["10.0.0.x", "10.0.0.2"]`, "broken|" + protection + "|"}, {`["10.0.0.0/33"]`, "broken||"}, {`["10.0.0.0/"]`, "broken||"},
		{`["all"]`, "broken||"}, {`["fe80::1%eth0"]`, "broken||"}, {`["::ffff:10.0.0.0/95"]`, "broken||"},
		// Without a list that can be decoded, it may mean any address.
		{`"10.0.0.2"`, "broken" + protection + "|" + protection + "|" + protection}, {`[7]`, "broken" + protection + "|" + protection + "|" + protection},
	} {
		t.Run(tt.ranges, func(t *testing.T) {
			value := `{"reservedCIDRs":` + tt.ranges + `}`
			if tt.ranges == "" {
				value = `{}`
			}
			want, broken := strings.CutPrefix(tt.want, "broken")
			inShapes(t, func(t *testing.T, sh shape) {
				s := newFixture(t, sh)
				s.more["ipreservations"] = []resource{
					{data: []byte(`{"metadata":{"name":"other"}}`)}, {data: []byte(`{"metadata":{"name":"keep"},"spec":` + value + `}`)},
				}
				s.put(blocks, "10.0.0.0/30", threeOfFour)
				var got []string
				var failure error
				for u, err := range s.backend.List(t.Context()) {
					failure = cmp.Or(failure, err)
					if whole := want == strings.Join([]string{protection, protection, protection}, "|"); err == nil && len(u.Allocations) == 3 && (u.Protected != "") != whole {
						t.Errorf("the block is protected by %q as a whole, want that: %v", u.Protected, whole)
					}
					for _, r := range u.Allocations {
						if !r.EmptyHandle {
							got = append(got, r.Protected)
						}
					}
				}
				if diff := gocmp.Diff(want, strings.Join(got, "|")); diff != "" {
					t.Errorf("protections (-want +got):\n%s", diff)
				}
				var object *ipam.ObjectError
				if broken != errors.As(failure, &object) || broken && !strings.HasPrefix(failure.Error(), "Calico's IPReservation keep: ") {
					t.Errorf("the listing has the error %v, want one that names the IPReservation: %v", failure, broken)
				}
			})
		})
	}
}

func TestOfflineRespectsIPReservations(t *testing.T) {
	for _, f := range forms {
		for ranges, want := range map[string]string{`["10.0.0.2"]`: "10.0.0.2", `["x"]`: ""} {
			d := ipam.Document{APIVersion: strings.TrimPrefix(f.name, "etcd"), Kind: "IPReservation"}
			if f.name == "etcd" {
				d = ipam.Document{Key: resourcePrefix + "ipreservations/keep"}
			}
			d.Data = []byte(fmt.Sprintf(`{"metadata":{"name":"keep"},"spec":{"reservedCIDRs":%s}}`, ranges))
			found, rest := Offline([]ipam.Document{d, f.document(blocks, "10.0.0.0/30", threeOfFour)})
			if found == nil || len(rest) != 0 {
				t.Fatalf("%s: found %v, and %d other documents", f.name, found, len(rest))
			}
			got := ""
			var failure error
			for u, err := range found.List(t.Context()) {
				failure = cmp.Or(failure, err)
				for _, r := range u.Allocations {
					if r.Protected == "Calico's IPReservation keep" {
						got += r.IP.String()
					}
				}
			}
			if got != want || (failure != nil) != (want == "") {
				t.Errorf("%s: protected are %q, %v; want %q", f.name, got, failure, want)
			}
		}
	}
}

// An address that Calico gives to no pod any more is not put back, and the others are.
func TestReservedAddressIsNotPutBack(t *testing.T) {
	for ranges, want := range map[string]string{ // of the first of two addresses, %s
		`[]`: "back", `["10.0.9.9"]`: "back",
		`["%s"]`: "final", `["10.0.9.0/24", "%s/32"]`: "final", `["nonsense", "%s"]`: "final",
		`"%s"`: "back", // nothing can be decoded
	} {
		t.Run(ranges, func(t *testing.T) {
			inShapes(t, func(t *testing.T, sh shape) {
				s := newFixture(t, sh)
				records := s.lose(2)
				reserve := func(ranges string) {
					s.more["ipreservations"] = []resource{{data: []byte(`{"metadata":{"name":"keep"},"spec":{"reservedCIDRs":` + ranges + `}}`)}}
					for _, err := range s.backend.List(t.Context()) {
						if object := (*ipam.ObjectError)(nil); err != nil && !errors.As(err, &object) {
							t.Fatal(err)
						}
					}
				}
				reserve(strings.ReplaceAll(ranges, "%s", records[0].IP))
				compared := s.backend.Compare(t.Context(), firstBlock, records)
				errs := s.backend.Restore(t.Context(), firstBlock, records)
				for name, answers := range map[string][]error{"Compare": compared, "Restore": errs} {
					if got := restoreOutcomes(answers); got != want+" back" {
						t.Errorf("%s = %v, want %s back", name, answers, want)
					}
				}
				if want == "back" {
					return
				}
				used := slices.Clone(records)
				used[0].InUse = true
				if got := restoreOutcomes(s.backend.Compare(t.Context(), firstBlock, used)); got != "back present" {
					t.Errorf("of a pod that uses it: Compare = %s", got)
				}
				if says := records[0].IP + " is not put back: Calico's IPReservation keep reserves it"; fmt.Sprint(errs[0]) != says {
					t.Errorf("Restore = %v, want %s", errs[0], says)
				}
				reserve(`[]`)
				if got := s.restore(records...); got != "back present" {
					t.Errorf("without the IPReservation: Restore = %s", got)
				}
			})
		})
	}
}
