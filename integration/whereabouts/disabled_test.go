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
)

// The plugin gives no address for an attachment without a range, unless its file on the node has a
// range. So the API server does not know what an exclude without a range means.
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
