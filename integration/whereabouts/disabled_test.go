package whereabouts_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// An attachment holds what it gives itself, and nothing more: one object does not keep
// the leaks of every pool.
func TestOneAttachmentDoesNotHoldEveryPool(t *testing.T) {
	for _, tt := range []struct{ name, ipam string }{
		{"without a range", `"exclude":["0.0.0.0/0","::/0"]`},
		{"without a range, of the network", `"network_name":"blue","exclude":["0.0.0.0/0"]`},
		{"of all of IPv4", `"range":"0.0.0.0/0","exclude":["0.0.0.0/0"]`},
		{"of all of IPv4, in the network", `"network_name":"blue","range":"0.0.0.0/0","exclude":["0.0.0.0/0"]`},
		{"with other ranges", `"exclude":["0.0.0.0/0"],"ipRanges":[{"range":"10.9.0.0/24","exclude":["0.0.0.0/0"]}]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.add(lan, "web-0")
			f.add(plugin.Network{NetworkName: "blue", Range: "10.7.0.0/24"}, "web-1")
			f.attach("all", tt.ipam)
			before := f.store()
			got := f.mustReap(reap.ExitDone, noLimit)
			f.wantLines(slices.Concat(
				both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released"),
				both("blue-10.7.0.0-24/1", "blue-10.7.0.1", "10.7.0.1 web-1 orphan PodAbsent released"),
			), got.lines)
			f.wantStore(before.without(got.lines))
			if len(got.report.Warnings) > 0 {
				t.Errorf("warnings %q, want none", got.report.Warnings)
			}
		})
	}
}

// A pool of which everything is excluded is held, and the run says by which attachment
// (promise 7).
func TestPoolOfWhichEverythingIsExcludedIsAWarning(t *testing.T) {
	for _, tt := range []struct{ name, ipam string }{
		{"by one range", `"range":"10.0.0.0/24","exclude":["0.0.0.0/0"]`},
		{"by its halves", `"range":"10.0.0.0/24","exclude":["10.0.0.0/25","10.0.0.128/25"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.add(lan, "web-0")
			f.add(plugin.Network{Range: "10.7.0.0/24"}, "web-1")
			f.attach("all", tt.ipam)
			got := f.mustReap(reap.ExitDone, noLimit)
			f.wantLines(slices.Concat(
				both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 held Protected kept"),
				both("10.7.0.0-24/1", "10.7.0.1", "10.7.0.1 web-1 orphan PodAbsent released"),
			), got.lines)
			want := []string{"nothing of whereabouts kube-system/10.0.0.0-24 is released, since every address is protected: " +
				"excluded by the network attachment " + shop + "/all"}
			if !slices.Equal(got.report.Warnings, want) {
				t.Errorf("warnings %q, want %q", got.report.Warnings, want)
			}
		})
	}
}

// The plugin itself gives no address for an attachment without a range, and takes the
// range of its file on the node if that has one. So an exclude without a range means
// nothing that the API server knows.
func TestPluginGivesNothingWithoutARange(t *testing.T) {
	f := newFixture(t)
	binary, err := assets.Path("whereabouts")
	f.must(err)
	_, kubeconfig := f.proxy()
	ask := func(ipam, flatFile string) ([]string, error) {
		path := filepath.Join(t.TempDir(), "whereabouts.conf")
		f.must(os.WriteFile(path, []byte(flatFile), 0o600))
		config := fmt.Sprintf(`{"cniVersion":"1.0.0","name":"lan","type":"macvlan","ipam":{"type":"whereabouts",
			"kubernetes":{"kubeconfig":%q},"configuration_path":%q%s}}`, kubeconfig, path, ipam)
		if !json.Valid([]byte(config)) {
			f.Fatalf("no JSON: %s", config)
		}
		call := plugin.Call{Binary: binary, Pod: plugin.Pod{Namespace: shop, Name: "web"}, ContainerID: f.sandbox(), Interface: "net1", Config: []byte(config)}
		ips, err := call.Add(f.Context())
		var texts []string
		for _, ip := range ips {
			texts = append(texts, ip.String())
		}
		return texts, err
	}
	for _, tt := range []struct {
		name, ipam, flatFile string
		want                 []string
		refused              bool
	}{
		{"no range", `,"exclude":["0.0.0.0/0"]`, `{}`, nil, false},
		{"no range in ipRanges", `,"ipRanges":[{"exclude":["0.0.0.0/0"]}]`, `{}`, nil, true},
		{"a range that is none", `,"range":"10.0.0.0/99"`, `{}`, nil, true},
		{"an exclude beside the ranges of ipRanges", `,"exclude":["0.0.0.0/0"],"ipRanges":[{"range":"10.5.0.0/24"}]`, `{}`, []string{"10.5.0.1"}, false},
		{"a range of IPv4 in IPv6", `,"range":"::ffff:10.6.0.0/120"`, `{}`, []string{"10.6.0.1"}, false},
		{"an exclude that is none", `,"range":"10.0.0.0/24","exclude":["nonsense"]`, `{}`, nil, true},
		{"the range of the file", `,"exclude":["10.8.0.0/30"]`, `{"range":"10.8.0.0/24"}`, []string{"10.8.0.4"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ask(tt.ipam, tt.flatFile)
			if refusal := new(plugin.Error); errors.As(err, &refusal) != tt.refused || err != nil && !tt.refused {
				t.Fatalf("the plugin gives %v, %v, want it to refuse: %v", got, err, tt.refused)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("the plugin gives %v, want %v", got, tt.want)
			}
		})
	}
}
