package whereabouts

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pluginName is the plugin's name for an overlapping reservation (NormalizeIP in
// its pkg/storage/kubernetes/ipam.go).
func pluginName(network string, addr netip.Addr) string {
	text := fmt.Sprint(net.IP(addr.AsSlice()))
	if text[len(text)-1] == ':' {
		text += "0"
	}
	text = strings.ReplaceAll(text, ":", "-")
	if network != "" {
		text = network + "-" + text
	}
	return text
}

// testPool returns a readable pool with a name in the plugin's form and a text before the
// range.
func testPool(t interface{ Fatal(...any) }, before, text string) ipPool {
	prefix, err := parseRange(text)
	if err != nil {
		t.Fatal(err)
	}
	p := ipPool{name: normalizeRange(prefix.Masked().String()), prefix: prefix}
	if before != "" {
		p.name = before + "-" + p.name
	}
	return p
}

func TestParseName(t *testing.T) {
	for _, tt := range []struct {
		name  string
		res   string
		pools [][2]string // the text before the range, and the range
		want  string      // network and address; empty: an error
	}{
		{"IPv4 needs no pool", "10.0.0.1", nil, " 10.0.0.1"},
		{"named IPv4 needs no pool", "my-net-2-10.0.0.1", nil, "my-net-2 10.0.0.1"},
		{"the only reading of an IPv6 name", "fd00--0", nil, " fd00::"},
		{"several readings and no pool", "2001-db8--2", nil, ""},
		{"no reading", "mynet", [][2]string{{"", "10.0.0.0/8"}}, ""},
		{"an empty name", "", [][2]string{{"", "10.0.0.0/8"}}, ""},
		{"IPv4 as the plugin does not write it", "10.0.0.01", [][2]string{{"", "10.0.0.0/8"}}, ""},
		{"IPv6 as the plugin does not write it", "fd00--01", [][2]string{{"", "fd00::/64"}}, ""},
		{"IPv4 in IPv6 form", "--ffff-a00-1", [][2]string{{"", "::ffff:10.0.0.0/104"}}, ""},
		{"IPv4 in a network called like an address", "10.0.0.1-10.0.0.2", nil, "10.0.0.1 10.0.0.2"},
		{"a pool of the unnamed network settles it", "2001-db8--2", [][2]string{{"", "2001:db8::/64"}}, " 2001:db8::2"},
		{"a pool of the named network settles it", "2001-db8--2", [][2]string{{"2001", "db8::/64"}}, "2001 db8::2"},
		{"a pool of another network does not", "2001-db8--2", [][2]string{{"2002", "db8::/64"}}, ""},
		{"a pool of another range does not", "2001-db8--2", [][2]string{{"", "fd00::/64"}}, ""},
		{"two pools that support one each", "2001-db8--2", [][2]string{{"", "2001:db8::/64"}, {"2001", "db8::/64"}}, ""},
		{"a node slice of the unnamed network", "2001-db8--2", [][2]string{{"node-a", "2001:db8::/80"}}, " 2001:db8::2"},
		{"a node slice of the named network", "2001-db8--2", [][2]string{{"2001-node-a", "db8::/80"}}, "2001 db8::2"},
		{"a network whose name begins the object's name", "2001-db8--2", [][2]string{{"2001db8", "db8::/64"}}, ""},
		{"trailing zero in a named network", "fdef-b041-5422-5--0", [][2]string{{"fdef", "b041:5422:5::/64"}}, "fdef b041:5422:5::"},
		{"network name of hexadecimal digits", "net-a-fd00--1", [][2]string{{"net-a", "fd00::/64"}}, "net-a fd00::1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var pools []ipPool
			for _, p := range tt.pools {
				pools = append(pools, testPool(t, p[0], p[1]))
			}
			r, err := parseName(tt.res, pools)
			got := r.network + " " + r.ip.String()
			if err != nil {
				got = ""
			}
			if got != tt.want {
				t.Errorf("parseName(%q) = %+v, %v, want %q", tt.res, r, err, tt.want)
			}
			if err != nil && !errors.Is(err, errAmbiguous) {
				t.Errorf("parseName(%q): %v does not wrap errAmbiguous", tt.res, err)
			}
		})
	}
}

// A pool with a name that the plugin would not make supports no reading.
func TestPoolOfAnotherNameProvesNothing(t *testing.T) {
	p := testPool(t, "", "2001:db8::/64")
	p.name = "my-pool"
	if r, err := parseName("2001-db8--2", []ipPool{p}); err == nil {
		t.Errorf("parseName = %+v, want an error", r)
	}
}

func TestTrueReadingIsAlwaysAmongTheReadings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := reading{drawNetwork(t), drawIP(t)}
		name := pluginName(want.network, want.ip)
		got := readings(name)
		if !slices.Contains(got, want) {
			t.Fatalf("readings(%q) = %v, want %v among them", name, got, want)
		}
		if want.ip.Is4() && len(got) != 1 {
			t.Fatalf("readings(%q) = %v, an IPv4 name has one", name, got)
		}
		for _, r := range got {
			if back := pluginName(r.network, r.ip); back != name {
				t.Fatalf("readings(%q) has %v, which the plugin would name %q", name, r, back)
			}
		}
	})
}

func TestWrongReadingIsNeverReturnedBesideTheTruePool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := reading{drawNetwork(t), drawIP(t)}
		name := pluginName(want.network, want.ip)
		before := want.network
		if node := drawNetwork(t); node != "" && rapid.Bool().Draw(t, "node slice") {
			before = strings.TrimPrefix(before+"-"+node, "-")
		}
		pools := []ipPool{testPool(t, before, around(t, want.ip))}
		others := 0 // number of other readings that a pool supports
		for _, r := range readings(name) {
			if r != want && rapid.Bool().Draw(t, "other pool") {
				pools = append(pools, testPool(t, rapid.SampledFrom([]string{r.network, "other", before}).Draw(t, "before"), around(t, r.ip)))
			}
		}
		for _, r := range readings(name) {
			if r != want && r.supportedBy(pools) {
				others++
			}
		}
		pools = rapid.Permutation(pools).Draw(t, "pools")
		got, err := parseName(name, pools)
		if err == nil && got != want {
			t.Fatalf("parseName(%q) = %v, want %v", name, got, want)
		}
		if err != nil && others == 0 {
			t.Fatalf("parseName(%q): %v, want %v", name, err, want)
		}
	})
}

// drawNetwork draws a network_name or none. Some look like parts of addresses.
func drawNetwork(t *rapid.T) string {
	return rapid.OneOf(
		rapid.Just(""),
		rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,10}[a-z0-9])?`),
		rapid.StringMatching(`[a-f0-9]{1,4}(--?[a-f0-9]{1,4}){0,6}`),
		rapid.StringMatching(`[0-9]{1,3}(\.[0-9]{1,3}){3}`),
	).Draw(t, "network")
}

// drawIP draws an address with many zeros. IPv4 in IPv6 form becomes the IPv4
// address, as in the plugin.
func drawIP(t *rapid.T) netip.Addr {
	size := rapid.SampledFrom([]int{4, 16, 16, 16}).Draw(t, "bytes")
	data := rapid.SliceOfN(rapid.OneOf(rapid.Just(byte(0)), rapid.Byte()), size, size).Draw(t, "address")
	addr, _ := netip.AddrFromSlice(data)
	return addr.Unmap()
}

// around draws a range that contains the address.
func around(t *rapid.T, addr netip.Addr) string {
	bits := rapid.IntRange(0, addr.BitLen()).Draw(t, "bits")
	return netip.PrefixFrom(addr, bits).Masked().String()
}
