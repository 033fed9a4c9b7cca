package main

import (
	"strings"
	"testing"
)

// found returns what is counted in a cluster in which blocks and handles are as at first,
// but for what change does.
func found(t *testing.T, f form, change func(b *blockContent, handles map[string]string)) (released, left int, err error) {
	t.Helper()
	const s = size(50) // one block
	stored := func(r record, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		content, err := f.content(r.value)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	block, handles := s.content(0), map[string]string{}
	for e := range entry(s.total()) {
		handles[e.given().Handle()] = string(stored(f.handleRecord(e)))
	}
	change(&block, handles)
	all := newFindings(s)
	if err := all.block("", stored(f.blockRecord(0, block))); err != nil {
		return 0, 0, err
	}
	for name, content := range handles {
		if err := all.handle(name, []byte(content)); err != nil {
			return 0, 0, err
		}
	}
	return all.count()
}

func TestWhatIsLeftIsCounted(t *testing.T) {
	gone := stale(0).given().Handle()
	lives := live(0).given().Handle()
	for _, tt := range []struct {
		name           string
		change         func(b *blockContent, handles map[string]string)
		released, left int
	}{
		{"nothing is released", func(*blockContent, map[string]string) {}, 0, 5},
		{"one is released", func(b *blockContent, handles map[string]string) {
			*b = b.without([]entry{stale(0)})
			delete(handles, gone)
		}, 1, 4},
		{"a handle is left without its address", func(b *blockContent, _ map[string]string) {
			*b = b.without([]entry{stale(0)})
		}, 0, 5},
		{"a handle is left that Calico has marked", func(b *blockContent, handles map[string]string) {
			*b = b.without([]entry{stale(0)})
			handles[gone] = `{"block":{},"deleted":true}`
		}, 0, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, f := range []form{inKubernetes, inEtcd} {
				released, left, err := found(t, f, tt.change)
				if err != nil || released != tt.released || left != tt.left {
					t.Errorf("%s: %d are released and %d left, want %d and %d: %v", f.part, released, left, tt.released, tt.left, err)
				}
			}
		})
	}
	for _, tt := range []struct {
		name   string
		change func(b *blockContent, handles map[string]string)
	}{
		{"a live address is released", func(b *blockContent, handles map[string]string) {
			*b = b.without([]entry{live(0)})
			delete(handles, lives)
		}},
		{"a live address is released, and its handle is left", func(b *blockContent, _ map[string]string) {
			*b = b.without([]entry{live(0)})
		}},
		{"a live address has lost its handle", func(_ *blockContent, handles map[string]string) { delete(handles, lives) }},
		{"a stale address has lost its handle", func(_ *blockContent, handles map[string]string) { delete(handles, gone) }},
		{"a handle has a wrong count", func(_ *blockContent, handles map[string]string) {
			handles[gone] = strings.Replace(handles[gone], ":1", ":2", 1)
		}},
		{"a handle counts in another block", func(_ *blockContent, handles map[string]string) {
			handles[gone] = strings.Replace(handles[gone], "10.0.0.0/26", "10.0.0.64/26", 1)
		}},
		{"a handle of a live address is marked", func(_ *blockContent, handles map[string]string) {
			handles[lives] = `{"block":{},"deleted":true}`
		}},
		{"there is another handle", func(_ *blockContent, handles map[string]string) { handles["another"] = handles[gone] }},
		{"two addresses have changed places", func(b *blockContent, _ map[string]string) {
			b.Attributes[0], b.Attributes[1] = b.Attributes[1], b.Attributes[0]
		}},
		{"a block has lost a free address", func(b *blockContent, _ map[string]string) { b.Unallocated = b.Unallocated[1:] }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, f := range []form{inKubernetes, inEtcd} {
				if released, left, err := found(t, f, tt.change); err == nil {
					t.Errorf("%s: %d are released and %d left", f.part, released, left)
				}
			}
		})
	}
}
