package whereabouts

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// attachment returns a network attachment with a configuration.
func attachment(name, config string) string {
	text, err := json.Marshal(config)
	if err != nil {
		panic(err) // a string always marshals
	}
	return fmt.Sprintf(`{"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
		"metadata": {"namespace": "shop", "name": %q}, "spec": {"config": %s}}`, name, text)
}

// single returns the configuration of one CNI plugin with these fields of its IPAM.
func single(ipam string) string {
	return `{"cniVersion": "1.0.0", "name": "net", "type": "macvlan", "ipam": {"type": "whereabouts"` + ipam + `}}`
}

// The addresses that the plugin skips because of a configuration are protected
// (parseExcludedRange and IterateForAssignment in its pkg/allocate).
func TestExcludedAddressesAreProtected(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config string
		want   string // the protected ones of 10.0.0.1 to 10.0.0.6 and fd00::1 to fd00::6
	}{
		{"a CIDR", single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.2/31"]`), "10.0.0.2 10.0.0.3"},
		{"a CIDR with host bits", single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.6/30"]`), "10.0.0.4 10.0.0.5 10.0.0.6"},
		{"an address", single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.5"]`), "10.0.0.5"},
		{"several", single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.5", "10.0.0.1/32"]`), "10.0.0.1 10.0.0.5"},
		{"IPv6", single(`, "range": "fd00::/64", "exclude": ["fd00::2", "fd00::4/127"]`), "fd00::2 fd00::4 fd00::5"},
		{"a mask with a leading zero", single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.5/032"]`), "10.0.0.5"},
		{"IPv4 in IPv6", single(`, "range": "10.0.0.0/24", "exclude": ["::ffff:10.0.0.4/127"]`), "10.0.0.4 10.0.0.5"},
		{"nothing", single(`, "range": "10.0.0.0/24"`), ""},
		{"an empty list", single(`, "range": "10.0.0.0/24", "exclude": []`), ""},
		{"null", single(`, "range": "10.0.0.0/24", "exclude": null`), ""},
		{"field names in another case", single(`, "Range": "10.0.0.0/24", "EXCLUDE": ["10.0.0.5"]`), "10.0.0.5"},

		{"of several ranges", single(`, "ipRanges": [{"range": "10.0.0.0/24", "exclude": ["10.0.0.1"]},
			{"range": "fd00::/64", "exclude": ["fd00::1"]}]`), "10.0.0.1 fd00::1"},
		{"of a range beside others", single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.1"],
			"ipRanges": [{"range": "fd00::/64", "exclude": ["fd00::1"]}]`), "10.0.0.1 fd00::1"},
		{"a range with a first address", single(`, "range": "10.0.0.3-10.0.0.0/24", "exclude": ["10.0.0.5"]`), "10.0.0.5"},
		{"a part of the pool's range", single(`, "range": "10.0.0.0/29", "exclude": ["10.0.0.5"]`), "10.0.0.5"},
		{"more than the pool's range", single(`, "range": "10.0.0.0/8", "exclude": ["10.0.0.5"]`), "10.0.0.5"},
		{"another range", single(`, "range": "10.9.0.0/24", "exclude": ["10.0.0.5"]`), ""},
		{"a range of the node's file", single(`, "exclude": ["10.0.0.5"]`), "10.0.0.5"},
		{"a range that is no range", single(`, "range": "10.0.0.0/99", "exclude": ["10.0.0.5"]`), "10.0.0.5"},

		{"the network's name", single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.5"], "network_name": "blue"`), "10.0.0.5"},
		{"another network's name", single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.5"], "network_name": "green"`), ""},
		{"the beginning of the network's name", single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.5"], "network_name": "blu"`), ""},

		{"the second plugin of a list", `{"name": "net", "plugins": [{"type": "tuning"}, ` +
			single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.5"]`) + `]}`, "10.0.0.5"},
		{"a plugin inside another", `{"type": "multus", "delegates": [` + single(`, "exclude": ["10.0.0.5"]`) + `]}`, "10.0.0.5"},
		{"another IPAM", `{"type": "macvlan", "ipam": {"type": "host-local", "range": "10.0.0.0/24", "exclude": ["10.0.0.5"]}}`, ""},
		{"another IPAM with other types", `{"name": "whereabouts", "type": "macvlan", "ipam": {"type": "static", "exclude": 7}}`, ""},
		{"no IPAM", `{"type": "macvlan"}`, ""},
		{"no configuration", ``, ""},
		{"a text without the plugin's type", `# see /etc/cni/net.d/10-lan.conf`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			excluded, err := readExclusions([]json.RawMessage{json.RawMessage(attachment("lan", tt.config))})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, base := range []string{"10.0.0.0/24", "fd00::/64"} {
				u := testPool(t, "blue", base).enginePool()
				for n := range 6 {
					ip, err := addressAt(u.Range, fmt.Sprint(n+1))
					if err != nil {
						t.Fatal(err)
					}
					u.Allocations = append(u.Allocations, reaper.Allocation{IP: ip})
				}
				excluded.protect(&u)
				for _, r := range u.Allocations {
					if r.Protected == "excluded by the network attachment shop/lan" {
						got = append(got, r.IP.String())
					} else if r.Protected != "" {
						t.Errorf("the protection of %s is %q", r.IP, r.Protected)
					}
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("protected (-want +got):\n%s", diff)
			}
		})
	}
}

// Promise 2. If an attachment may exclude addresses and cannot be decoded, the
// listing fails.
func TestUnreadableExclusionsFailTheListing(t *testing.T) {
	for _, tt := range []struct{ name, attachment, says string }{
		{"not JSON", attachment("lan", `{"ipam": {"type": "whereabouts", `), "shop/lan"},
		{"no address", attachment("lan", single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0"]`)), "10.0.0"},
		{"a mask too long", attachment("lan", single(`, "exclude": ["10.0.0.0/33"]`)), "10.0.0.0/33"},
		{"an address with leading zeros", attachment("lan", single(`, "exclude": ["10.0.0.05"]`)), "10.0.0.05"},
		{"an empty text", attachment("lan", single(`, "exclude": [""]`)), "shop/lan"},
		{"no list", attachment("lan", single(`, "exclude": "10.0.0.5"`)), "shop/lan"},
		{"ranges of a wrong type", attachment("lan", single(`, "ipRanges": {}`)), "shop/lan"},
		{"a bad exclude in ipRanges", attachment("lan", single(`, "ipRanges": [{"range": "10.0.0.0/24", "exclude": ["x"]}]`)), "shop/lan"},
		{"configuration of a wrong type", `{"metadata": {"namespace": "shop", "name": "lan"}, "spec": {"config": {}}}`, "shop/lan"},
		{"no object", `[]`, "network attachment"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readExclusions([]json.RawMessage{json.RawMessage(attachment("ok", "{}")), json.RawMessage(tt.attachment)})
			if err == nil || got != nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("readExclusions = %v, %v, want nothing and an error with %q", got, err, tt.says)
			}
		})
	}
}

func TestAttachmentWithoutSpecExcludesNothing(t *testing.T) {
	got, err := readExclusions([]json.RawMessage{json.RawMessage(`{"metadata": {"namespace": "shop", "name": "lan"}}`)})
	if err != nil || got != nil {
		t.Errorf("readExclusions = %v, %v, want nothing", got, err)
	}
}

func TestExclusionsByNetworkOfThePool(t *testing.T) {
	for _, tt := range []struct {
		network, of string
		want        bool
	}{
		{"", unnamed, true},
		{"", "blue", true},
		{"blue", "blue", true},
		{"blue", "blue-node-1", true},
		{"blue", "blues", false},
		{"blue", unnamed, false},
		{"blue", "", true}, // a pool without a network may be of any
	} {
		if got := (exclusion{network: tt.network}).fits(reaper.Pool{Network: tt.of}); got != tt.want {
			t.Errorf("an exclusion of the network %q fits a pool of %q: %v, want %v", tt.network, tt.of, got, tt.want)
		}
	}
}

// Any configuration is decoded or refused. A decoded exclusion protects its first
// address.
func FuzzReadConfig(f *testing.F) {
	f.Add(single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.2/31", "10.0.0.9"], "network_name": "blue"`))
	f.Add(`{"plugins": [` + single(`, "ipRanges": [{"range": "fd00::/64", "exclude": ["fd00::1"]}]`) + `]}`)
	f.Add(`{"ipam": {"type": "whereabouts", "exclude": [""]}}`)
	f.Fuzz(func(t *testing.T, config string) {
		all, err := readConfig(config)
		if err != nil {
			if all != nil {
				t.Errorf("readConfig = %v beside an error", all)
			}
			return
		}
		if len(all) > 0 && !json.Valid([]byte(config)) {
			t.Errorf("%v are read from a text that is no JSON", all)
		}
		for _, e := range all {
			if len(e.ranges) == 0 {
				t.Error("an exclusion has no ranges")
			}
			for _, r := range e.ranges {
				first, ok := netip.AddrFromSlice(r.IP)
				if !ok || all.protection(first) == "" {
					t.Errorf("%s is excluded, and its first address is not protected", r)
				}
			}
		}
	})
}
