package whereabouts

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// longAttachment returns an attachment of the network blue with these fields and so many MiB of
// others.
func longAttachment(name string, mib int, ipam string) json.RawMessage {
	return json.RawMessage(attachment(name, inBlue(ipam+`, "x": "`+strings.Repeat("x", mib<<20)+`"`)))
}

// manyRanges returns so many ranges of four addresses, all different.
func manyRanges(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"range": "172.%d.%d.%d/30"}`, 16+i>>14, i>>6&255, i&63<<2))
	}
	return `, "ipRanges": [` + strings.Join(all, ",") + `]`
}

// Promise 2. What is beyond the limit may exclude all that it names, whatever the order. The
// longest go first, so that a tenant cannot crowd out the others.
func TestConfigurationsThatAreTooLongTogether(t *testing.T) {
	const in = `, "range": "10.0.0.0/24", "exclude": ["10.0.0.5"]`
	small := json.RawMessage(attachment("lan", inBlue(in)))
	other := func(mib int, more string) json.RawMessage {
		return longAttachment(fmt.Sprint("other-", mib), mib, more)
	}
	const all, by = "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6", "the network attachment shop/other-6 may exclude it: spec.config: the conf"
	for _, tt := range []struct {
		name  string
		items []json.RawMessage
		want  string // the protected among 10.0.0.1 to 10.0.0.6 of the network blue
		by    string
		left  string // the attachments whose configuration is not kept
	}{
		{"together within the limit", []json.RawMessage{small, other(4, ""), other(3, "")}, "10.0.0.5", "excluded by the network attachment shop/lan", ""},
		{"of another range", []json.RawMessage{small, other(6, `, "range": "10.1.0.0/24"`), other(4, `, "range": "10.2.0.0/24"`)},
			"10.0.0.5", "excluded by the network attachment shop/lan", "shop/other-6"},
		{"of a range that nothing gives", []json.RawMessage{other(6, in), other(4, `, "range": "10.2.0.0/24"`)}, all, by, "shop/other-6"},
		{"of a range that another gives", []json.RawMessage{small, other(6, in), other(4, `, "range": "10.2.0.0/24"`)}, "10.0.0.5", "", "shop/other-6"},
		{"of another network", []json.RawMessage{
			json.RawMessage(strings.ReplaceAll(string(other(6, in)), "blue", "green")), other(4, `, "range": "10.2.0.0/24"`),
		}, all, by, "shop/other-6"},
		{"of slices", []json.RawMessage{other(6, `, "range": "10.0.0.0/16", "node_slice_size": "/24"`), other(4, `, "range": "10.2.0.0/24"`)}, all, by, "shop/other-6"},
		{"each too long alone", []json.RawMessage{small, other(9, `, "range": "10.1.0.0/24"`), other(10, `, "range": "10.2.0.0/24"`)},
			"10.0.0.5", "excluded by the network attachment shop/lan", "shop/other-10 shop/other-9"},
		{"not of the plugin", []json.RawMessage{small, json.RawMessage(attachment("long", `{"type": "sriov", "x": "`+strings.Repeat("x", 9<<20)+`"}`))},
			"10.0.0.5", "excluded by the network attachment shop/lan", ""},
		{"of more ranges than are kept", []json.RawMessage{other(6, manyRanges(maxUnread+1)), other(4, `, "range": "10.2.0.0/24"`)}, all, by, "shop/other-6"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 {
				excluded := readExclusions(tt.items)
				got := protectedBy(t, excluded, tt.by, testPool(t, "blue", "10.0.0.0/24"))
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("protected (-want +got):\n%s", diff)
				}
				var left []string
				for _, err := range excluded.broken {
					name, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "network attachment "), ":")
					left = append(left, name)
				}
				if slices.Sort(left); strings.Join(left, " ") != tt.left {
					t.Errorf("not kept are %q, want %q", left, tt.left)
				}
				slices.Reverse(tt.items)
			}
		})
	}
}

// Promise 2. Beyond 10,000 ranges, all addresses of all networks may be excluded, but for those
// that are given.
func TestRangesThatAreTooMany(t *testing.T) {
	given := json.RawMessage(attachment("lan", single(`, "range": "10.0.0.0/29"`)))
	excluded := readExclusions([]json.RawMessage{given, longAttachment("long", 9, manyRanges(maxUnread+1))})
	if n := len(excluded.ranges); n != 3 {
		t.Errorf("%d ranges are kept, want that of lan, and one for each family", n)
	}
	for network, want := range map[string]string{"": "", "green": "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6"} {
		got := protectedBy(t, excluded, "the network attachment shop/long may exclude it", testPool(t, network, "10.0.0.0/29"))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("protected in the network %q (-want +got):\n%s", network, diff)
		}
	}
	for _, in := range []string{"", "fd00::/64", "::/80"} {
		at := place{network: unnamed}
		if in != "" {
			at.in = netip.MustParsePrefix(in)
		}
		k := excluded.excludedAt(at)
		for _, ip := range []string{"10.9.0.1", "fd00::1"} {
			if k.protection(netip.MustParseAddr(ip)) == "" {
				t.Errorf("%s is not protected in %q", ip, in)
			}
		}
	}
}

// A list is read again after its answer broke off. What was read before does not count.
func TestAttachmentsThatAreReadAgainCountOnce(t *testing.T) {
	long := longAttachment("long", 5, `, "range": "10.0.0.0/24"`)
	var c configurations
	for range 3 {
		if a := c.take(long); a.unread || c.size != a.size {
			t.Errorf("it is unread: %v, and all together have %d bytes, want %d", a.unread, c.size, a.size)
		}
	}
	longer := longAttachment("longer", 9, manyRanges(maxUnread-1))
	for range 3 {
		if a := c.take(longer); !a.unread || len(a.ranges) != maxUnread-1 {
			t.Errorf("it is unread: %v, with %d ranges, want %d", a.unread, len(a.ranges), maxUnread-1)
		}
	}
}

// BenchmarkAttachments reads 160 attachments of a MiB, of excludes or of ranges. It reports how
// many MiB are kept of them.
func BenchmarkAttachments(b *testing.B) {
	var excludes []string
	for i := range 75_000 {
		excludes = append(excludes, fmt.Sprintf(`"10.%d.%d.%d"`, i>>15, i>>7&255, i&127<<1))
	}
	for name, ipam := range map[string]string{
		"excludes": `, "range": "10.0.0.0/8", "exclude": [` + strings.Join(excludes, ",") + `]`,
		"ranges":   manyRanges(35_000),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				var c configurations
				var all []*configuration
				for n := range 160 {
					all = append(all, c.take(json.RawMessage(attachment(fmt.Sprint("a", n), inBlue(ipam)))))
				}
				excluded := excludedBy(all)
				excluded.excludedAt(place{"blue", netip.MustParsePrefix("10.0.0.0/8")})
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/(1<<20), "MiB-kept")
				runtime.KeepAlive(excluded)
			}
		})
	}
}
