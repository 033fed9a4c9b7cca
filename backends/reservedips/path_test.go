package reservedips_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/reservedips"
)

const noPath = `must be one JSONPath, such as .spec.ip, {.spec.ips[*]} or .spec.nets[?(@.name=="net1")].ip, ` +
	`with a backslash before a dot in a name`

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
		{"a part of a list among its items", ".a[0,1:]"},
		{"a part of a list in a filter", ".a[?(@.b[1:])]"},
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
