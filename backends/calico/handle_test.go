package calico

import (
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mustReadHandle reads a handle that must be valid.
func mustReadHandle(t *testing.T, o object) handle {
	t.Helper()
	h, err := readHandle(o)
	if err != nil {
		t.Fatalf("read handle: %v\n%s", err, o.raw)
	}
	return h
}

func TestHandlesAreRead(t *testing.T) {
	in := func(pairs ...any) map[netip.Prefix]int {
		counts := make(map[netip.Prefix]int)
		for i := 0; i < len(pairs); i += 2 {
			counts[prefix(pairs[i].(string))] = pairs[i+1].(int)
		}
		return counts
	}
	for _, tt := range []struct {
		name    string
		value   string // with the ID, which etcd ignores: it is in the key
		counts  map[netip.Prefix]int
		deleted bool
	}{
		{"one address", `{"handleID":"net.A","block":{"10.0.0.0/26":1},"deleted":false}`, in("10.0.0.0/26", 1), false},
		{"half deleted", `{"handleID":"net.A","block":{},"deleted":true}`, in(), true},
		{"no blocks", `{"handleID":"net.A"}`, in(), false},
		{"nothing is left in a block", `{"handleID":"net.A","block":{"10.0.0.0/26":0}}`, in("10.0.0.0/26", 0), false},
		{"unknown fields", `{"Block":7,"more":{"block":1},"handleID":"net.A","block":{"10.0.0.0/26":1}}`, in("10.0.0.0/26", 1), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inShapes(t, func(t *testing.T, s shape) {
				h := mustReadHandle(t, s.stored(handles, "net.A", tt.value))
				if h.id != "net.A" || !maps.Equal(h.counts, tt.counts) || h.deleted != tt.deleted {
					t.Errorf("readHandle = %q, %v, deleted %v, want %v, %v", h.id, h.counts, h.deleted, tt.counts, tt.deleted)
				}
			})
		})
	}
}

func TestBrokenHandlesAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		value string
		says  string
	}{
		{"CIDR that is no CIDR", `{"handleID":"net.A","block":{"10-0-0-0-26":1}}`, "10-0-0-0-26"},
		{"address for a CIDR", `{"handleID":"net.A","block":{"10.0.0.0":1}}`, "10.0.0.0"},
		{"CIDR in another spelling", `{"handleID":"net.A","block":{"fd80:24e2:0::/122":1}}`, "another spelling of fd80:24e2::/122"},
		{"count that is a string", `{"handleID":"net.A","block":{"10.0.0.0/26":"1"}}`, "decode"},
		{"blocks of a wrong type", `{"handleID":"net.A","block":["10.0.0.0/26"]}`, "decode"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inShapes(t, func(t *testing.T, s shape) {
				h, err := readHandle(s.stored(handles, "net.A", tt.value))
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("readHandle = %+v, %v, want %q in the error", h, err, tt.says)
				}
			})
		})
	}
	for name, o := range map[string]object{
		"kubernetes": shapes[0].stored(handles, "net.a", `{"block":{"10.0.0.0/26":1}}`),
		"etcd":       shapes[1].stored(handles, "", `{"handleID":"net.a","block":{"10.0.0.0/26":1}}`),
	} {
		if h, err := readHandle(o); err == nil {
			t.Errorf("in %s a handle without an ID is read as %q", name, h.id)
		}
	}
}

func TestHandleWithCount(t *testing.T) {
	const v4, v6 = "10.0.0.0/26", "fd80:24e2::/122"
	for _, tt := range []struct {
		name  string
		value string
		cidr  string
		freed int
		want  string // empty: the handle is deleted
	}{
		{"some of many", `{"x":1.50,"handleID":"net.A","block":{"10.0.0.0/26":3,"10.0.1.0/26":1},"deleted":false}`, v4, 2,
			`{"x":1.50,"handleID":"net.A","block":{"10.0.0.0/26":1,"10.0.1.0/26":1},"deleted":false}`},
		{"all of one block, the first", `{"handleID":"net.A","block":{"10.0.0.0/26":2,"fd80:24e2::/122":1},"deleted":false}`, v4, 2,
			`{"handleID":"net.A","block":{"fd80:24e2::/122":1},"deleted":false}`},
		{"all of one block, between", "{ \"block\" : { \"10.0.1.0/26\" : 1 , \"10.0.0.0/26\" : 1 ,\n\"10.0.2.0/26\" : 1 } , \"handleID\" : \"net.A\" , \"n\" : 12345678901234567890 }", v4, 1,
			"{ \"block\" : { \"10.0.1.0/26\" : 1  ,\n\"10.0.2.0/26\" : 1 } , \"handleID\" : \"net.A\" , \"n\" : 12345678901234567890 }"},
		{"a block that begins with a colon", `{"handleID":"net.A","block":{"::/122":2,"10.0.0.0/26":1}}`, "::/122", 1,
			`{"handleID":"net.A","block":{"::/122":1,"10.0.0.0/26":1}}`},
		{"more than are counted", `{"handleID":"net.A","block":{"10.0.0.0/26":1,"10.0.1.0/26":1}}`, v4, 5,
			`{"handleID":"net.A","block":{"10.0.1.0/26":1}}`},
		{"fewer than none, so that the count is put right", `{"handleID":"net.A","block":{"10.0.0.0/26":1}}`, v4, -2,
			`{"handleID":"net.A","block":{"10.0.0.0/26":3}}`},
		{"key in another spelling", `{"handleID":"net.A","block":{"10.0.0.0\/26":2,"10.0.1.0\/26":1}}`, v4, 1,
			`{"handleID":"net.A","block":{"10.0.0.0\/26":1,"10.0.1.0\/26":1}}`},
		{"all that there are", `{"handleID":"net.A","block":{"10.0.0.0/26":2},"deleted":false}`, v4, 2, ""},
		{"all, and a block that is counted no more", `{"handleID":"net.A","block":{"10.0.0.0/26":2,"10.0.1.0/26":0}}`, v4, 2,
			`{"handleID":"net.A","block":{"10.0.1.0/26":0}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inShapes(t, func(t *testing.T, s shape) {
				h := mustReadHandle(t, s.stored(handles, "net.A", tt.value))
				counts, raw := maps.Clone(h.counts), string(h.raw)
				after, err := h.withCount(prefix(tt.cidr), h.counts[prefix(tt.cidr)]-tt.freed)
				if err != nil {
					t.Fatal(err)
				}
				if tt.want == "" {
					if after.raw != nil || len(after.counts) > 0 || after.token() != h.token() || after.name != h.name {
						t.Errorf("the handle is %+v, want a deletion of the version that was read", after)
					}
				} else if diff := cmp.Diff(string(s.stored(handles, "net.A", tt.want).raw), string(after.raw)); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
				if !maps.Equal(h.counts, counts) || string(h.raw) != raw {
					t.Errorf("the handle that was read changed to %+v", h)
				}
			})
		})
	}
}

func TestHandlesThatCannotBeEdited(t *testing.T) {
	for name, value := range map[string]string{
		"a block twice":          `{"handleID":"net.A","block":{"10.0.0.0/26":3,"10.0.0.0/26":3}}`,
		"the blocks twice":       `{"handleID":"net.A","block":{"10.0.1.0/26":3},"block":{"10.0.0.0/26":3}}`,
		"an unknown field twice": `{"handleID":"net.A","x":1,"x":2,"block":{"10.0.0.0/26":3}}`,
		"all blocks twice":       `{"handleID":"net.A","block":{"10.0.0.0/26":3,"10.0.1.0/26":1},"block":{"10.0.0.0/26":3,"10.0.1.0/26":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			inShapes(t, func(t *testing.T, s shape) {
				h := mustReadHandle(t, s.stored(handles, "net.A", value))
				after, err := h.withCount(prefix("10.0.0.0/26"), 2)
				if err == nil || strings.Contains(err.Error(), "%!") || !strings.Contains(err.Error(), "net.A") {
					t.Errorf("without one address the handle is %s, %v, want an error that names it", after.raw, err)
				}
			})
		})
	}
}
