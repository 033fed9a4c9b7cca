package calico

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"testing"
)

// If a handle that readHandle accepts can be edited, only the one count changes.
func FuzzHandle(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte, resource bool, freed uint8) {
		o := object{kind: handles, name: handlePrefix + "net.a", raw: data}
		if resource {
			var err error
			if o, err = readObject(handles, data); err != nil {
				return
			}
		}
		before, err := readHandle(o)
		if err != nil {
			return
		}
		listingOf(nil, []object{o}, nil).emptyHandles()
		for _, cidr := range slices.SortedFunc(maps.Keys(before.counts), func(a, b netip.Prefix) int { return cmp.Compare(a.String(), b.String()) }) {
			after, err := before.without(cidr, int(freed))
			if err != nil {
				continue
			}
			want := maps.Clone(before.counts)
			if want[cidr] -= int(freed); want[cidr] <= 0 {
				delete(want, cidr)
			}
			if after.raw == nil {
				if len(want) > 0 {
					t.Errorf("the handle is to be deleted, and should count %v", want)
				}
				continue
			}
			if got, _ := counted(t, after.object); !maps.Equal(got, want) {
				t.Errorf("without %d in %s the handle counts %v, want %v", freed, cidr, got, want)
			}
			_, was := counted(t, before.object)
			if _, is := counted(t, after.object); was != is {
				t.Errorf("the rest is %s, and was %s", is, was)
			}
		}
	})
}

// counted returns what a handle counts, and its other bytes. It does not use the
// code under test.
func counted(t *testing.T, o object) (map[netip.Prefix]int, string) {
	t.Helper()
	values, rest, err := fields(o, []string{"block"})
	var texts map[string]int
	if value, ok := values["block"]; ok && err == nil {
		err = json.Unmarshal([]byte(value), &texts)
	}
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[netip.Prefix]int)
	for text, n := range texts {
		counts[prefix(text)] = n
	}
	return counts, rest
}
