package whereabouts

import (
	"math/big"
	"net"
	"net/netip"
	"testing"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/iphelpers"
	"pgregory.net/rapid"
)

func TestAddressAt(t *testing.T) {
	for _, tt := range []struct {
		name   string
		prefix string
		key    string
		want   string // empty: an error
	}{
		{"first address", "10.0.0.0/24", "1", "10.0.0.1"},
		{"offset 0 is the base", "10.0.0.0/24", "0", "10.0.0.0"},
		{"base as written, not masked", "10.10.10.5/16", "1", "10.10.10.6"},
		{"last address behind an unmasked base", "10.10.10.5/16", "62970", "10.10.255.255"},
		{"IPv6", "fd00::/64", "10", "fd00::a"},
		{"IPv6 base as written", "fd00::5/64", "1", "fd00::6"},
		{"IPv6 offset above 2^63", "fd00::/64", "9223372036854775808", "fd00::8000:0:0:0"},
		{"IPv6 offset beyond 64 bits", "fd00::/48", "18446744073709551621", "fd00:0:0:1::5"},
		{"IPv4 in IPv6 form", "::ffff:10.0.0.0/120", "1", "10.0.0.1"},

		{"one past the range", "10.0.0.0/24", "256", ""},
		{"wraps around 32 bits to a sibling", "10.0.0.0/24", "4294967297", ""},
		{"one past a /64", "fd00::/64", "18446744073709551616", ""},
		{"wraps around 128 bits to a sibling", "fd00::/64", "340282366920938463463374607431768211457", ""},
		{"letters", "10.0.0.0/24", "abc", ""},
		{"negative", "10.0.0.0/24", "-1", ""},
		{"plus sign", "10.0.0.0/24", "+1", ""},
		{"leading zeros", "10.0.0.0/24", "007", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			prefix, err := parseRange(tt.prefix)
			if err != nil {
				t.Fatal(err)
			}
			ip, err := addressAt(prefix, tt.key)
			got := ip.String()
			if err != nil {
				got = ""
			}
			if got != tt.want {
				t.Errorf("addressAt(%s, %q) = %v, %v, want %q", tt.prefix, tt.key, ip, err, tt.want)
			}
			if err != nil && ip.IsValid() {
				t.Errorf("addressAt(%s, %q) = %v beside the error %v", tt.prefix, tt.key, ip, err)
			}
		})
	}
}

// TestAddressAtAgreesWithThePlugin compares with the plugin's own arithmetic where that is
// right: for offsets below 2^63 that stay in the range.
func TestAddressAtAgreesWithThePlugin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := drawPrefix(t)
		offset := rapid.OneOf(
			rapid.Uint64Range(0, 300),
			rapid.Uint64Range(0, 1<<32-2),
			rapid.Uint64Range(0, 1<<63-1),
		).Draw(t, "offset")
		key := new(big.Int).SetUint64(offset).String()
		want, ok := netip.AddrFromSlice(iphelpers.IPAddOffset(net.IP(prefix.Addr().AsSlice()), offset))
		want = want.Unmap()
		got, err := addressAt(prefix, key)
		switch {
		case ok && prefix.Contains(want):
			if err != nil || got != want {
				t.Fatalf("addressAt(%v, %s) = %v, %v, want %v", prefix, key, got, err, want)
			}
		case err == nil:
			t.Fatalf("addressAt(%v, %s) = %v, want an error: %v is outside", prefix, key, got, want)
		}
	})
}

// TestHandedOutAgreesWithThePlugin counts from the first to the last address that
// the plugin allocates.
func TestHandedOutAgreesWithThePlugin(t *testing.T) {
	for _, base := range []string{"10.128.0.0", "fd00:8000::"} {
		addr := netip.MustParseAddr(base)
		for bits := range addr.BitLen() + 1 {
			prefix := netip.PrefixFrom(addr, bits).Masked()
			ipnet := net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(bits, addr.BitLen())}
			want := new(big.Int)
			if first, last, err := iphelpers.GetIPRange(ipnet, nil, nil); err == nil {
				want.Sub(new(big.Int).SetBytes(last.To16()), new(big.Int).SetBytes(first.To16()))
				want.Add(want, big.NewInt(1))
			}
			if got := handedOut(prefix).Count(); got.Cmp(want) != 0 {
				t.Errorf("handedOut(%v) = %v, the plugin gives %v", prefix, got, want)
			}
		}
	}
}

func TestPoolPrefix(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pool   string
		prefix string
		want   string
		ok     bool
	}{
		{"unnamed network", "10.0.0.0-24", "10.0.0.0/24", "", true},
		{"named network", "mynet-10.0.0.0-24", "10.0.0.0/24", "mynet", true},
		{"node slice of a named network", "mynet-node-a-10.0.0.16-28", "10.0.0.16/28", "mynet-node-a", true},
		{"IPv6", "2001-db8---64", "2001:db8::/64", "", true},
		{"IPv6 of a network that looks like an address", "2001-db8---64", "db8::/64", "2001", true},
		{"range that is not masked, named after the masked one", "10.10.0.0-16", "10.10.10.5/16", "", true},
		{"another range", "10.0.1.0-24", "10.0.0.0/24", "", false},
		{"a longer first byte", "110.0.0.0-24", "10.0.0.0/24", "", false},
		{"made by hand", "my-pool", "10.0.0.0/24", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := poolPrefix(tt.pool, netip.MustParsePrefix(tt.prefix))
			if ok != tt.ok || ok && got != tt.want {
				t.Errorf("poolPrefix(%s, %s) = %q, %v, want %q, %v", tt.pool, tt.prefix, got, ok, tt.want, tt.ok)
			}
		})
	}
	if got, ok := poolPrefix("x", netip.Prefix{}); ok {
		t.Errorf("poolPrefix of no range = %q, want none", got)
	}
}

func TestRangeInTheNameOfAPool(t *testing.T) {
	for name, want := range map[string]string{
		"10.0.0.0-24":        "10.0.0.0/24",
		"mynet-10.0.0.0-24":  "10.0.0.0/24",
		"1-2-10.0.0.16-28":   "10.0.0.16/28",
		"2001-db8---64":      "",
		"-ffff-10.0.0.0-120": "",
		"10.0.0.0-33":        "",
		"10.0.0-24":          "",
		"24":                 "",
		"-":                  "",
		"":                   "",
	} {
		got := rangeInName(name)
		if want == "" && got.IsValid() || want != "" && got.String() != want {
			t.Errorf("rangeInName(%q) = %v, want %q", name, got, want)
		}
	}
}

// drawPrefix draws a range, masked or not.
func drawPrefix(t *rapid.T) netip.Prefix {
	size := rapid.SampledFrom([]int{4, 16}).Draw(t, "bytes of an address")
	data := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "base")
	addr, _ := netip.AddrFromSlice(data)
	return netip.PrefixFrom(addr.Unmap(), rapid.IntRange(0, addr.Unmap().BitLen()).Draw(t, "bits"))
}
