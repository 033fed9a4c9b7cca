package whereabouts

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// longAttachment returns an attachment of the network blue with these fields and so many MiB of
// others.
func longAttachment(name string, mib int, ipam string) string {
	return attachment(name, inBlue(ipam+`, "x": "`+strings.Repeat("x", mib<<20)+`"`))
}

// manyRanges returns so many ranges of four addresses, all different.
func manyRanges(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"range": "172.%d.%d.%d/30"}`, 16+i>>14, i>>6&255, i&63<<2))
	}
	return `, "ipRanges": [` + strings.Join(all, ",") + `]`
}

// What is beyond the limit may be of any network, whatever the order. The longest go first, so that a tenant
// cannot crowd out the others.
func TestConfigurationsThatAreTooLongTogether(t *testing.T) {
	const in = `, "range": "10.0.0.0/24", "exclude": ["10.0.0.5"]`
	small := attachment("lan", inBlue(in))
	other := func(mib int, more string) string {
		return longAttachment(fmt.Sprint("other-", mib), mib, more)
	}
	for _, tt := range []struct {
		name  string
		items []string
		want  string // the excluded among 10.0.0.1 to 10.0.0.6 of the network blue
		left  string // the attachments whose configuration is not kept
	}{
		{"together within the limit", []string{small, other(4, ""), other(3, "")}, "10.0.0.5", ""},
		{"of another range", []string{small, other(6, `, "range": "10.1.0.0/24"`), other(4, `, "range": "10.2.0.0/24"`)}, "10.0.0.5", "shop/other-6"},
		{"of a range that nothing gives", []string{other(6, in), other(4, `, "range": "10.2.0.0/24"`)}, "unknown", "shop/other-6"},
		{"of a range that another gives", []string{small, other(6, in), other(4, `, "range": "10.2.0.0/24"`)}, "10.0.0.5", "shop/other-6"},
		{"of another network", []string{strings.ReplaceAll(other(6, in), "blue", "green"), other(4, `, "range": "10.2.0.0/24"`)}, "unknown", "shop/other-6"},
		{"of slices", []string{other(6, `, "range": "10.0.0.0/16", "node_slice_size": "/24"`), other(4, `, "range": "10.2.0.0/24"`)}, "unknown", "shop/other-6"},
		{"each too long alone", []string{small, other(9, `, "range": "10.1.0.0/24"`), other(10, `, "range": "10.2.0.0/24"`)},
			"10.0.0.5", "shop/other-10 shop/other-9"},
		{"not of the plugin", []string{small, attachment("long", `{"type": "sriov", "x": "`+strings.Repeat("x", 9<<20)+`"}`)}, "10.0.0.5", ""},
		{"of more ranges than are kept", []string{other(6, manyRanges(maxUnread+1)), other(4, `, "range": "10.2.0.0/24"`)}, "unknown", "shop/other-6"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 {
				s := surveyOf(tt.items...)
				got := excludedIn(t, s, "excluded by the network attachment shop/lan", testPool(t, "blue", "10.0.0.0/24"))
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("excluded (-want +got):\n%s", diff)
				}
				var left []string
				for _, err := range brokenIn(&s) {
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

// Promise 1, 2. Beyond 10,000 ranges, any address of any network may be meant, but for those that are
// given. So no name of an IPPool proves which node may adopt an entry.
func TestRangesThatAreTooMany(t *testing.T) {
	s := surveyOf(attachment("lan", single(`, "range": "10.0.0.0/29"`)), longAttachment("long", 9, manyRanges(maxUnread+1)))
	if n := len(s.ranges); n != 3 {
		t.Errorf("%d ranges are kept, want that of lan, and one for each family", n)
	}
	for network, want := range map[string]bool{"": true, "green": false} {
		if n := networkOfPool(t, s, testPool(t, network, "10.0.0.0/29")); n.Known != want {
			t.Errorf("the network %q is known: %v, want %v", network, n.Known, want)
		}
	}
	s.take([]slicePool{readSlicePool([]byte(sliceOfTwo("red")))})
	p := readPool(emptyPool("red-n1-10.0.0.0-25", "10.0.0.0/25"))
	if node := s.nodeOf(p); node != "" {
		t.Errorf("the pool is the slice of %q", node)
	}
	s.ranges = nil
	if node := s.nodeOf(p); node != "n1" {
		t.Errorf("without attachments, the pool is the slice of %q, want n1", node)
	}
}

// A list is read again after its answer broke off. What was read before does not count.
func TestAttachmentsThatAreReadAgainCountOnce(t *testing.T) {
	long := longAttachment("long", 5, `, "range": "10.0.0.0/24"`)
	var c configurations
	for range 3 {
		if a := c.take(json.RawMessage(long)); a.unread || c.size != a.size {
			t.Errorf("it is unread: %v, and all together have %d bytes, want %d", a.unread, c.size, a.size)
		}
	}
	longer := longAttachment("longer", 9, manyRanges(maxUnread-1))
	for range 3 {
		if a := c.take(json.RawMessage(longer)); !a.unread || len(a.ranges) != maxUnread-1 {
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
				var r round
				for n := range 160 {
					r.attachments = append(r.attachments, c.take(json.RawMessage(attachment(fmt.Sprint("a", n), inBlue(ipam)))))
				}
				s := r.survey()
				networks := s.networks(nil)
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/(1<<20), "MiB-kept")
				runtime.KeepAlive(networks)
			}
		})
	}
}
