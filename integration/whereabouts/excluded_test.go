package whereabouts_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// attach creates a network attachment in the shop with these IPAM fields, in a list of plugins as
// for Multus.
func (f *fixture) attach(name, ipam string) {
	f.Helper()
	f.must(f.CreateNetwork(f.Context(), shop, name, fmt.Sprintf(`{"cniVersion":"1.0.0","name":%q,"plugins":[
		{"type":"macvlan","ipam":{"type":"whereabouts",%s}},{"type":"tuning"}]}`, name, ipam)))
}

// Networks that share a range by exclude do not protect each other's leaks. The plugin gives
// addresses as the attachments say.
func TestNetworksMayShareARangeByExclude(t *testing.T) {
	const lower, upper = `"range":"10.0.0.0/28","exclude":["10.0.0.8/29"]`, `"range":"10.0.0.0/28","exclude":["10.0.0.0/29","10.0.0.10"]`
	play(t, []scenario{{
		name: "and what both exclude stays",
		set: func(f *fixture) {
			f.attach("lower", lower)
			f.attach("upper", upper)
			f.add(plugin.Network{Range: "10.0.0.0/28", Exclude: []string{"10.0.0.8/29"}}, "web-0")
			f.add(plugin.Network{Range: "10.0.0.0/28", Exclude: []string{"10.0.0.0/29", "10.0.0.10"}}, "web-1")
			f.add(plugin.Network{Range: "10.0.0.0/28", Exclude: []string{"10.0.0.0/29", "10.0.0.9"}}, "web-2") // as upper was before
		},
		want: slices.Concat(
			both("10.0.0.0-28/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released"),
			both("10.0.0.0-28/8", "10.0.0.8", "10.0.0.8 web-1 orphan PodAbsent released"),
			both("10.0.0.0-28/10", "10.0.0.10", "10.0.0.10 web-2 held Protected kept"),
		),
	}, {
		name: "or in a part of it",
		set: func(f *fixture) {
			f.attach("all", `"range":"10.0.0.0/28","exclude":["10.0.0.8/29"]`)
			f.attach("part", `"range":"10.0.0.8/29"`)
			f.add(plugin.Network{Range: "10.0.0.8/29"}, "web-0")
		},
		want: both("10.0.0.8-29/1", "10.0.0.9", "10.0.0.9 web-0 orphan PodAbsent released"),
	}})
}

// What a tenant writes into an attachment fails no run, so that it hides no real failure. An address
// that the attachment may exclude stays, and goes once the attachment can be read (promises 2, 7).
func TestAttachmentThatCannotBeDecodedFailsNoRun(t *testing.T) {
	f := newFixture(t)
	f.must(f.CreateNetwork(t.Context(), shop, "odd", `{"type":"whereabouts","range":"10.0.0.0/28"`))
	f.add(plugin.Network{Range: "10.0.0.0/28"}, "web-0")
	f.add(plugin.Network{Range: "10.1.0.0/28"}, "web-1")
	odd, other := both("10.0.0.0-28/1", "10.0.0.1", "10.0.0.1 web-0 "), both("10.1.0.0-28/1", "10.1.0.1", "10.1.0.1 web-1 ")
	with := func(lines []string, rest string) []string { return []string{lines[0] + rest, lines[1] + rest} }
	got := f.mustReap(reap.ExitDone, noLimit)
	f.wantLines(slices.Concat(with(odd, "held Protected kept"), with(other, "orphan PodAbsent released")), got.lines)
	const says = "network attachment shop/odd: spec.config: "
	if !slices.ContainsFunc(got.report.Warnings, func(text string) bool { return strings.HasPrefix(text, says) }) {
		t.Errorf("warnings %q, want one that names the attachment", got.report.Warnings)
	}
	for _, b := range got.report.Backends {
		if b.Status != "skipped" && (b.Status != "ok" || len(b.Undecoded) != 1 || !strings.HasPrefix(b.Undecoded[0], says)) {
			t.Errorf("%s is %s with %q, want it ok, and the attachment named", b.Name, b.Status, b.Undecoded)
		}
	}

	f.must(f.Dynamic.Resource(cluster.NetworkAttachments).Namespace(shop).Delete(t.Context(), "odd", metav1.DeleteOptions{}))
	f.wantLines(with(odd, "orphan PodAbsent released"), f.mustReap(reap.ExitDone, noLimit).lines)
}

// Until it runs out, the plugin gives exactly the addresses of a range that ip-reaper does not
// consider excluded.
func TestPluginGivesWhatIsNotExcluded(t *testing.T) {
	f := newFixture(t)
	n := plugin.Network{
		Range: "10.0.0.0/28", Exclude: []string{"10.0.0.3/31", "10.0.0.5", "10.0.0.9/30", "::ffff:10.0.0.13/128"},
		DisableOverlapping: true,
	}
	free := map[string]bool{}
	for i := range 14 {
		ips, err := f.tryAdd(n, fmt.Sprintf("web-%d", i), f.sandbox(), "net1")
		if refusal := new(plugin.Error); errors.As(err, &refusal) {
			break
		}
		f.must(err)
		free[ips[0]] = true
	}
	// Every address of the range has an entry.
	entries := map[string]any{}
	for offset := 1; offset < 15; offset++ {
		entries[fmt.Sprint(offset)] = map[string]string{"id": "c", "podref": "shop/web"}
	}
	allocations, err := json.Marshal(entries)
	f.must(err)
	f.clear()
	f.writePool("10.0.0.0-28", n.Range, string(allocations))
	exclude, err := json.Marshal(n.Exclude)
	f.must(err)
	f.attach("lan", fmt.Sprintf(`"range":%q,"exclude":%s`, n.Range, exclude))
	for _, r := range f.listed() {
		if free[r.IP.String()] == (r.Protected != "") {
			t.Errorf("the plugin gives %s: %t; it is taken for reserved: %q", r.IP, free[r.IP.String()], r.Protected)
		}
	}
	if len(free) != 14-8 {
		t.Errorf("the plugin gave %d addresses, want 6", len(free))
	}
}

// A restore puts back exactly what the plugin can give to a pod. The plugin gives a gateway.
func TestRestorePutsBackWhatThePluginGives(t *testing.T) {
	for _, tt := range []struct {
		pool, first string
		fields      string // of the IPAM of the attachment
		network     plugin.Network
	}{
		{"10.0.0.0-28", "10.0.0.0", `"range":"10.0.0.0/28","gateway":"10.0.0.1","exclude":["10.0.0.3/31","10.0.0.9/30"]`,
			plugin.Network{Range: "10.0.0.0/28", Exclude: []string{"10.0.0.3/31", "10.0.0.9/30"}}},
		{"10.0.0.0-28", "10.0.0.0", `"range":"10.0.0.0/28","range_start":"10.0.0.4","range_end":"10.0.0.9","exclude":["10.0.0.6"]`,
			plugin.Network{Range: "10.0.0.0/28", RangeStart: "10.0.0.4", RangeEnd: "10.0.0.9", Exclude: []string{"10.0.0.6"}}},
		{"fd00---124", "fd00::", `"range":"fd00::/124","range_end":"fd00::c","exclude":["fd00::4/126"]`,
			plugin.Network{Range: "fd00::/124", RangeEnd: "fd00::c", Exclude: []string{"fd00::4/126"}}},
	} {
		t.Run(tt.fields, func(t *testing.T) {
			f := newFixture(t)
			given := f.exhaust(tt.network, "web")
			f.clear()
			entries := map[string]any{}
			var want, back []string
			ip := netip.MustParseAddr(tt.first)
			for offset := range 16 {
				name := strings.ReplaceAll(ip.String(), ":", "-")
				if strings.HasSuffix(name, "-") {
					name += "0"
				}
				entries[fmt.Sprint(offset)] = map[string]string{"id": "c", "podref": "shop/web"}
				f.writeReservation(name, "shop/web")
				if slices.Contains(given, ip.String()) {
					want = append(want, fmt.Sprintf("%s/%d", tt.pool, offset), name)
				}
				ip = ip.Next()
			}
			allocations, err := json.Marshal(entries)
			f.must(err)
			f.writePool(tt.pool, tt.network.Range, string(allocations))
			records := f.records()
			f.clear()
			f.writePool(tt.pool, tt.network.Range, `{}`)
			f.attach("lan", tt.fields)
			for _, line := range f.restore(f.Config, records) {
				name, answer, _ := strings.Cut(line, " ")
				switch {
				case answer == "back":
					back = append(back, name)
				case !strings.Contains(answer, "is not put back: the network attachment shop/lan "):
					t.Errorf("%s: %s", name, answer)
				}
			}
			f.wantLines(want, slices.Sorted(slices.Values(back)))
		})
	}
}

// A cluster without Multus has no attachments, and no definition of them. It is enough that the API
// server says so.
func TestWithoutDefinitionOfAttachmentsNothingIsExcluded(t *testing.T) {
	f := newFixture(t)
	f.UndefineT(t, cluster.NetworkAttachments)
	f.writePool("10.0.0.0-24", "10.0.0.0/24", `{"1":{"id":"c","podref":"shop/web"}}`)
	f.writeReservation("10.0.0.1", "shop/web")
	if got := f.listed(); len(got) != 2 || got[0].Protected+got[1].Protected != "" {
		t.Errorf("listed %+v, want an entry and a reservation that nothing excludes", got)
	}
}

// listed returns what both backends list.
func (f *fixture) listed() []ipam.Allocation {
	f.Helper()
	var all []ipam.Allocation
	for _, b := range f.recorders(f.Config) {
		for pool, err := range b.List(f.Context()) {
			f.must(err)
			all = append(all, pool.Allocations...)
		}
	}
	return all
}
