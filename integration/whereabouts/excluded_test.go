package whereabouts_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// attach creates a network attachment in the shop with the fields of its IPAM, in
// a list of plugins as Multus takes it.
func (f *fixture) attach(name, ipam string) {
	f.Helper()
	f.must(f.CreateNetwork(f.Context(), shop, name, fmt.Sprintf(`{"cniVersion":"1.0.0","name":%q,"plugins":[
		{"type":"macvlan","ipam":{"type":"whereabouts",%s}},{"type":"tuning"}]}`, name, ipam)))
}

// An address that its network excludes by now is kept back when its pod is gone. A
// pod that is there has it all the same.
func TestExcludedAddressesAreHeld(t *testing.T) {
	play(t, []scenario{{
		name: "and others released",
		set: func(f *fixture) {
			for _, pod := range []string{"web-0", "web-1"} {
				f.add(lan, pod)
			}
			f.runs("live", f.add(lan, "live")...)
			f.attach("lan", `"range":"10.0.0.0/24","exclude":["10.0.0.2/31"]`)
		},
		want: slices.Concat(
			both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released"),
			both("10.0.0.0-24/2", "10.0.0.2", "10.0.0.2 web-1 held Protected kept"),
			both("10.0.0.0-24/3", "10.0.0.3", "10.0.0.3 live inUse PodPresent kept"),
		),
	}, {
		name: "in the network that the attachment is of",
		set: func(f *fixture) {
			f.add(plugin.Network{NetworkName: "blue", Range: "10.0.0.0/24"}, "web-0")
			f.add(plugin.Network{NetworkName: "green", Range: "10.0.0.0/24"}, "web-1")
			f.attach("lan", `"range":"10.0.0.0/24","exclude":["10.0.0.1"],"network_name":"blue"`)
		},
		want: slices.Concat(
			both("blue-10.0.0.0-24/1", "blue-10.0.0.1", "10.0.0.1 web-0 held Protected kept"),
			both("green-10.0.0.0-24/1", "green-10.0.0.1", "10.0.0.1 web-1 orphan PodAbsent released"),
		),
	}, {
		name: "of both families",
		set: func(f *fixture) {
			f.add(plugin.Network{Range: "10.0.0.0/24", Ranges: []plugin.Range{{Range: "fd00::/64"}}}, "web-0")
			f.attach("lan", `"range":"10.0.0.0/24","ipRanges":[{"range":"fd00::/64","exclude":["fd00::/126"]}]`)
		},
		want: slices.Concat(
			both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released"),
			both("fd00---64/1", "fd00--1", "fd00::1 web-0 held Protected kept"),
		),
	}, {
		name: "not by an attachment of another plugin, or without a configuration",
		set: func(f *fixture) {
			f.add(lan, "web-0")
			f.must(f.CreateNetwork(f.Context(), shop, "static", `{"type":"macvlan","ipam":{"type":"static","exclude":["10.0.0.1"]}}`))
			f.must(f.CreateNetwork(f.Context(), shop, "file", ""))
		},
		want: both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released"),
	}})
}

// Networks that share a range by exclude do not lock each other's leaks. The plugin
// gives their addresses as the attachments say.
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

// An attachment that cannot be understood holds the ranges that it names, and nothing
// else. The run names it (promises 2 and 9).
func TestAttachmentThatCannotBeUnderstoodHoldsTheRangesThatItNames(t *testing.T) {
	const kept, gone = "held Protected kept", "orphan PodAbsent released"
	for _, tt := range []struct{ name, config, lan, blue, says string }{
		{"an address that is none", `{"ipam":{"type":"whereabouts","range":"10.0.0.0/24","exclude":["10.0.0"]}}`, kept, gone, `exclude: "10.0.0" is neither an address nor a CIDR`},
		{"in a named network", `{"ipam":{"type":"whereabouts","network_name":"blue","range":"10.7.0.0/24","exclude":["10.0.0"]}}`, gone, kept, `exclude: "10.0.0" is neither an address nor a CIDR`},
		{"of a range without a pool", `{"ipam":{"type":"whereabouts","range":"10.9.0.0/24","exclude":["10.0.0"]}}`, gone, gone, `exclude: "10.0.0" is neither an address nor a CIDR`},
		{"of all of IPv4", `{"ipam":{"type":"whereabouts","range":"0.0.0.0/0","exclude":["10.0.0"]}}`, gone, gone, `exclude: "10.0.0" is neither an address nor a CIDR`},
		{"no JSON", `{"ipam":{"type":"whereabouts"`, gone, gone, "unexpected end of JSON input"},
		{"no JSON, with a range", `{"ipam":{"type":"whereabouts","range":"10.0.0.0/24"`, kept, gone, "unexpected end of JSON input"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.add(lan, "web-0")
			f.add(plugin.Network{NetworkName: "blue", Range: "10.7.0.0/24"}, "web-1")
			f.must(f.CreateNetwork(f.Context(), shop, "odd", tt.config))
			before := f.store()
			got := f.mustReap(reap.ExitPartial, "")
			f.wantLines(slices.Concat(
				both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 "+tt.lan),
				both("blue-10.7.0.0-24/1", "blue-10.7.0.1", "10.7.0.1 web-1 "+tt.blue),
			), got.lines)
			f.wantStore(before.without(got.lines))
			for _, b := range got.report.Backends {
				for _, part := range []string{"network attachment shop/odd: spec.config: " + tt.says, "correct it, or delete the attachment"} {
					if b.Name != "calico" && (b.Status != "partial" || !strings.Contains(b.Message, part)) {
						t.Errorf("%s is %s: %q, want it partial with %q", b.Name, b.Status, b.Message, part)
					}
				}
			}
		})
	}
}

// Attachments that cannot be read hold everything, and the run says so (promise 2).
func TestAttachmentsThatCannotBeReadHoldTheBackends(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer proxy.Action
		says   string
	}{
		{"403", proxy.Forbidden(), "injected: forbidden"},
		{"500", proxy.InternalError(), "injected: internal error"},
		{
			"404, although they are served", proxy.Answer(http.StatusNotFound, metav1.StatusReasonNotFound, "injected"),
			"although the API server serves k8s.cni.cncf.io/v1",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.fill(lan.Range, map[int]string{1: "web-0"})
			f.toReaper.Before(proxy.On("list "+cluster.NetworkAttachments.Resource), proxy.Always(tt.answer))
			before := f.store()
			got := f.mustReap(reap.ExitPartial, "")
			f.wantLines(nil, got.lines)
			for _, b := range got.report.Backends {
				if b.Name != "calico" && (b.Status != "failed" || !strings.Contains(b.Message, tt.says)) {
					t.Errorf("%s is %s: %q, want it failed with %q", b.Name, b.Status, b.Message, tt.says)
				}
			}
			f.wantStore(before)
		})
	}
}

// The plugin gives exactly the addresses of a range that are not taken for
// excluded, until it has no more.
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

// A cluster without Multus has no attachments, and no definition of them. The API
// server's word for that is enough.
func TestWithoutDefinitionOfAttachmentsNothingIsExcluded(t *testing.T) {
	f := newFixture(t)
	f.UndefineT(t, cluster.NetworkAttachments)
	f.writePool("10.0.0.0-24", "10.0.0.0/24", `{"1":{"id":"c","podref":"shop/web"}}`)
	f.writeReservation("10.0.0.1", "shop/web")
	if got := f.listed(); len(got) != 2 || got[0].Protected+got[1].Protected != "" {
		t.Errorf("listed %+v, want an entry and a reservation that nothing excludes", got)
	}
}

// listed is what both backends list.
func (f *fixture) listed() []reaper.Allocation {
	f.Helper()
	var all []reaper.Allocation
	for _, b := range f.recorders(f.Config) {
		for pool, err := range b.List(f.Context()) {
			f.must(err)
			all = append(all, pool.Allocations...)
		}
	}
	return all
}
