package reservedips_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/reservedips"
)

// node is a JSON object.
type node = map[string]any

const noPath = `must be one JSONPath, such as .spec.ip, {.spec.ips[*]} or .spec.nets[?(@.name=="net1")].ip, ` +
	`with a backslash before a dot in a name`

// reserved is an object in the form that the dynamic client returns.
var reserved = node{
	"metadata": node{"annotations": node{"example.com/ttl": "24h"}},
	"spec": node{
		"ip":  "10.0.0.1",
		"ips": []any{"10.0.0.1", "fd00::1"},
		"interfaces": []any{
			node{"name": "net1", "ip": "10.0.0.1", "primary": true},
			node{"name": "eth0", "ip": "10.0.0.2", "mtu": int64(1500)},
		},
		"ttl": int64(3600),
	},
}

func TestPathsLeadToFields(t *testing.T) {
	for _, tt := range []struct {
		path reservedips.FieldPath
		want []any
	}{
		{".spec.ip", []any{"10.0.0.1"}},
		{"{.spec.ip}", []any{"10.0.0.1"}},
		{"$.spec.ip", []any{"10.0.0.1"}},
		{"{$['spec']['ip']}", []any{"10.0.0.1"}},
		{".spec.ttl", []any{int64(3600)}},
		{".spec.ips", []any{[]any{"10.0.0.1", "fd00::1"}}},
		{".spec.ips[*]", []any{"10.0.0.1", "fd00::1"}},
		{".spec.ips[-1]", []any{"fd00::1"}},
		{".spec['ip','ttl']", []any{"10.0.0.1", int64(3600)}},
		{".spec.interfaces[*].ip", []any{"10.0.0.1", "10.0.0.2"}},
		{"..mtu", []any{int64(1500)}},
		{`.spec.interfaces[?(@.name=="eth0")].ip`, []any{"10.0.0.2"}},
		{`.spec.interfaces[?(@.name == 'eth0')].ip`, []any{"10.0.0.2"}},
		{".spec.interfaces[?(@.primary==true)].ip", []any{"10.0.0.1"}},
		{".spec.interfaces[?(@.mtu)].ip", []any{"10.0.0.2"}},
		{".spec.interfaces[?(@.mtu>=1500)].ip", []any{"10.0.0.2"}},
		{`.metadata.annotations.example\.com/ttl`, []any{"24h"}},
		{`.metadata.annotations['example\.com/ttl']`, []any{"24h"}},
		{".status.deletedAt", nil},
		{".status.addresses[*].ip", nil},
		{".spec.ip.address", nil},
		{".status.addresses[0]", nil},
	} {
		t.Run(string(tt.path), func(t *testing.T) {
			path, err := tt.path.Parse()
			if err != nil {
				t.Fatal(err)
			}
			results, err := path.FindResults(reserved)
			var got []any
			for _, result := range results {
				for _, value := range result {
					got = append(got, value.Interface())
				}
			}
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("FindResults: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestWhatIsNoPathIsRefused(t *testing.T) {
	for _, tt := range []struct{ name, path string }{
		{"empty", ""},
		{"a word", "spec.ip"},
		{"the whole object", "{}"},
		{"a value", "5"},
		{"two expressions", "{.a}{.b}"},
		{"text before the expression", "ip {.a}"},
		{"a loop", "{range .a[*]}{.b}{end}"},
		{"braces that are open", "{.a"},

		{"a dot alone", "."},
		{"a name that is empty", ".a['']"},
		{"a dot in a name", ".a['example.com/ip']"},
		{"a word", ".a[0]b"},
		{"a word in a filter", ".a[?(b==1)]"},
		{"a quoted text", `.a "b"`},
		{"a list without an index", ".a[]"},
		{"a part of a list", ".a[1:]"},
		{"an open list", ".a[0"},
		{"an unknown operator", ".a[?(@.b===1)]"},
		{"two conditions", ".a[?(@.b==1 && @.c==2)]"},
		{"several paths", ".a,.b"},
		{"all items in a text", `.a[?(@.b=="[*]")]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, err := reservedips.FieldPath(tt.path).Parse()
			if err == nil || err.Error() != noPath || path != nil {
				t.Errorf("Parse(%q) = %v, %v, want the error %q", tt.path, path, err, noPath)
			}
		})
	}
}
