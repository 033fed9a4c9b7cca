package calico

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The stored bytes survive a journal that spaces its JSON differently.
func TestRecordKeepsTheStoredBytes(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		s := newFixture(t, sh)
		rs := s.leak(1)
		s.replace(blocks, firstBlock, `{"handle_id"`, `{ "new" : [ 1.50, 12345678901234567890, "<&>\u00e9" ] , "handle_id"`)
		s.replace(handles, firstHandle, `"deleted"`, `"new" : 12345678901234567890, "deleted"`)
		before := s.contents()
		records := s.records(slices.Clone(rs)...)
		indented, err := json.MarshalIndent(records, "", "  ") // as a journal may write it
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(indented, &records); err != nil {
			t.Fatal(err)
		}
		if got := outcomes(s.backend.Release(t.Context(), s.warrants(rs...))); got != "gone" {
			t.Fatalf("Release = %s", got)
		}
		if got := s.restore(records...); got != "back" {
			t.Errorf("Restore = %s", got)
		}
		if diff := cmp.Diff(before, s.contents()); diff != "" {
			t.Errorf("stored (-before +after):\n%s", diff)
		}
		if o, _ := s.look(handles, firstHandle); sh.name == "kubernetes" && !strings.Contains(string(o.raw), `"annotations":{"a":"{\"spec\":1}"}`) {
			t.Errorf("the handle has lost its annotations: %s", o.raw)
		}
	})
}

func TestChangedAllocationsHaveNoRecord(t *testing.T) {
	for name, happen := range map[string]func(s *fixture, r ipam.Allocation){
		"it is gone":           func(s *fixture, r ipam.Allocation) { _ = s.Free("a", r.Owner) },
		"it has another owner": func(s *fixture, _ ipam.Allocation) { s.replace(blocks, firstBlock, "gone-1", "gone-9") },
		"its block is gone":    func(s *fixture, _ ipam.Allocation) { s.remove(blocks, firstBlock) },
		"its block is broken": func(s *fixture, _ ipam.Allocation) {
			s.replace(blocks, firstBlock, `"unallocated":[`, `"unallocated":[7,`)
		},
		"its block is deleted": func(s *fixture, _ ipam.Allocation) {
			s.replace(blocks, firstBlock, `"deleted":false`, `"deleted":true`)
		},
		"its handle cannot be read": func(s *fixture, _ ipam.Allocation) { s.replace(handles, firstHandle, `:1`, `:"x"`) },
	} {
		t.Run(name, func(t *testing.T) {
			inShapes(t, func(t *testing.T, sh shape) {
				s := newFixture(t, sh)
				rs := s.leak(1)
				r := s.listed()[backendtest.Place(rs[0])]
				happen(s, rs[0])
				if records, err := s.backend.Record(t.Context(), []ipam.Allocation{r}); err != nil || records[0] != nil {
					t.Errorf("the record is %s, %v, want none", records, err)
				}
			})
		})
	}
}

// Many objects are read with a list, and so are a few if a single read fails.
func TestRecordReadsOneByOneOrLists(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		s := newFixture(t, sh)
		rs := s.leak(1)
		r := s.listed()[backendtest.Place(rs[0])]
		s.onRequest(func(request string) error {
			if strings.HasPrefix(request, "list") {
				return errBroken
			}
			return nil
		})
		if records, err := s.backend.Record(t.Context(), []ipam.Allocation{r}); err != nil || records[0] == nil {
			t.Errorf("one by one, Record = %s, %v", records, err)
		}
		s.always("get", errBroken)
		if records, err := s.backend.Record(t.Context(), []ipam.Allocation{r}); err != nil || records[0] == nil {
			t.Errorf("by a list, Record = %s, %v", records, err)
		}
		s.always("", errBroken)
		if records, err := s.backend.Record(t.Context(), []ipam.Allocation{r}); err == nil {
			t.Errorf("every request fails, and Record returns %s", records)
		}
		many := []string{firstHandle}
		for i := range mostReads {
			many = append(many, fmt.Sprint("net.", i))
		}
		s.onRequest(nil)
		var found []string
		if err := readAll(t.Context(), s, handles, many, func(o object) { found = append(found, o.name) }); err != nil || len(found) != 1 || len(s.requests()) != 1 {
			t.Errorf("found %v, %v, by %d requests", found, err, len(s.requests()))
		}
	})
}

// A handle without an address is put back as a whole or not at all.
func TestEmptyHandleIsRestored(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		s := newFixture(t, sh)
		records := s.records(s.emptyHandle())
		before := s.contents()
		put := func() string {
			return restoreOutcomes(s.backend.Restore(t.Context(), emptyHandles, records, backendtest.Permit))
		}
		if got := put(); got != "present" {
			t.Errorf("Restore of an existing handle = %s", got)
		}
		s.put(handles, firstHandle, handleJSON(sh, `{"10.0.0.0/26":2}`))
		if got := put(); got != "taken" {
			t.Errorf("Restore of a handle that now counts more = %s", got)
		}
		for name, tt := range map[string]struct {
			happen func() error // at the creation
			want   string
		}{
			"nothing":            {func() error { return nil }, "back"},
			"the answer is lost": {func() error { return errLost }, "again"},
			"another restore": {func() error {
				s.emptyHandle()
				return nil
			}, "again"}, // the next try finds it

		} {
			s.remove(handles, firstHandle)
			s.failing("create handle", tt.happen)
			if got := put(); got != tt.want {
				t.Errorf("%s: Restore = %s, want %s", name, got, tt.want)
			}
			if diff := cmp.Diff(before, s.contents()); diff != "" {
				t.Errorf("stored (-before +after):\n%s", diff)
			}
		}
	})
}

// Calico takes a handle of these names for that of a tunnel, a virtual machine or a service, and
// panics at a block that is no CIDR. No run releases such a handle.
func TestEmptyHandlesOfOthersAreRefused(t *testing.T) {
	for _, tt := range []struct{ id, counts, says string }{
		{"vxlan-tunnel-addr-node-1", `{"10.0.0.0/26":1}`, "that of a tunnel"},
		{"wireguard-tunnel-addr-node-1.example.com", `{"10.0.0.0/26":1}`, "that of a tunnel"},
		{"IPIP-Tunnel-Addr-node-1.example.com", `{"10.0.0.0/26":1}`, "that of a tunnel"},
		{"k8s-pod-network.vmi.default.vm-1", `{"10.0.0.0/26":1}`, "that of a virtual machine"},
		{"windows-reserved-ipam-handle", `{"10.0.0.0/26":1}`, "that of Windows"},
		{"lb-n4bqgyhmfwwal", `{"10.0.0.0/26":1}`, "that of a service"},
		{"k8s-pod-network", `{"10.0.0.0/26":1}`, "has not the form <network>.<sandbox>"},
		{"k8s-pod-network.", `{"10.0.0.0/26":1}`, "has not the form <network>.<sandbox>"},
		{"k8s-pod-network.a/b", `{"10.0.0.0/26":1}`, "has not the form <network>.<sandbox>"},
		{"k8s-pod-network.c1", `{"10.0.0.0/26":1,"x":1}`, `"x" is not a CIDR`},
		{"k8s-pod-network.c1", `{"fd00::/64":1}`, "fd00::/64 is not the CIDR of a block"},
		{"k8s-pod-network.c1", `{"10.0.0.0/20":1,"fd00::1000/116":1}`, ""},
		{"default.web-0", `{"10.0.0.9/32":1,"fd00::9/128":1}`, ""}, // of Calico v2
	} {
		t.Run(tt.id, func(t *testing.T) {
			inShapes(t, func(t *testing.T, sh shape) {
				s := newFixture(t, sh)
				o := sh.stored(handles, tt.id, fmt.Sprintf(`{"handleID":%q,"block":%s}`, tt.id, tt.counts))
				stored, err := json.Marshal(handleRecord{o.name, string(o.raw)})
				if err != nil {
					t.Fatal(err)
				}
				errs := s.backend.Restore(t.Context(), emptyHandles, []ipam.Record{{Pool: emptyHandles, Key: tt.id, Stored: stored}}, backendtest.Permit)
				if got := fmt.Sprint(errs[0]); tt.says != "" && !strings.Contains(got, tt.says) || tt.says == "" && errs[0] != nil {
					t.Errorf("Restore = %s, want %q", got, tt.says)
				}
				if _, ok := s.look(handles, tt.id); ok != (tt.says == "") {
					t.Errorf("Restore = %v, and the store has the handle: %t", errs[0], ok)
				}
			})
		})
	}
}

// edits are manual changes to a record, and part of the error that each causes.
var edits = []struct {
	name string
	edit func(r *ipam.Record, rec *record)
	says string
}{
	{"a key out of range", func(r *ipam.Record, _ *record) { r.Key = "64" }, `no ordinal "64"`},
	{"another address", func(r *ipam.Record, _ *record) { r.IP = "10.0.0.9" }, `the record is of "10.0.0.9"`},
	{"another key", func(r *ipam.Record, _ *record) { r.Key = "7" }, `key "7"`},
	{"another pool", func(r *ipam.Record, _ *record) { r.Pool = "10.1.0.0/26" }, `in pool "10.1.0.0/26"`},
	{"no attribute", func(_ *ipam.Record, rec *record) { rec.Attribute = "" }, "attribute"},
	{"an attribute that is a list", func(_ *ipam.Record, rec *record) { rec.Attribute = `[]` }, "attribute"},
	{"an attribute that is null", func(_ *ipam.Record, rec *record) { rec.Attribute = `null` }, "attribute"},
	{"an attribute that goes on", func(_ *ipam.Record, rec *record) { rec.Attribute += `,{}` }, "attribute"},
	{"an attribute with a key twice", func(_ *ipam.Record, rec *record) {
		rec.Attribute = strings.Replace(rec.Attribute, "{", `{"x":1,"x":2,`, 1)
	}, "attribute"},
	{"another handle in the attribute", func(_ *ipam.Record, rec *record) {
		rec.Attribute = strings.Replace(rec.Attribute, "k8s-pod-network", "other", 1)
	}, "its handle is"},
	{"another name of the handle", func(_ *ipam.Record, rec *record) { rec.Handle.Name += "x" }, "handle"},
	{"a handle that is no JSON", func(_ *ipam.Record, rec *record) { rec.Handle.Stored = "{" }, "handle"},
	{"another handle", func(_ *ipam.Record, rec *record) {
		rec.Handle.Name = strings.Replace(rec.Handle.Name, "k8s-pod-network", "other", 1)
		rec.Handle.Stored = strings.ReplaceAll(rec.Handle.Stored, "k8s-pod-network", "other")
	}, "and its handle is"},
	{"the handle of a tunnel", func(_ *ipam.Record, rec *record) { rename(rec, "k8s-pod-network", "vxlan-tunnel-addr-node-1") }, "its attribute is that of a tunnel"},
	{"a handle of no sandbox", func(_ *ipam.Record, rec *record) { rename(rec, "k8s-pod-network.", "k8s-pod-network-") }, "has not the form <network>.<sandbox>"},
	{"a handle in no block", func(_ *ipam.Record, rec *record) { rename(rec, "10.0.0.0/26", "x") }, `"x" is not a CIDR`},
	{"a handle in more than a block", func(_ *ipam.Record, rec *record) { rename(rec, "10.0.0.0/26", "10.0.0.0/19") }, "10.0.0.0/19 is not the CIDR of a block"},
	{"a handle in a part of a block", func(_ *ipam.Record, rec *record) { rename(rec, "10.0.0.0/26", "10.0.0.1/26") }, "10.0.0.1/26 is not the CIDR of a block"},
}

// rename replaces a text in the attribute and in the handle.
func rename(rec *record, before, after string) {
	for _, text := range []*string{&rec.Attribute, &rec.Handle.Name, &rec.Handle.Stored} {
		*text = strings.ReplaceAll(*text, before, after)
	}
}

// Restore writes nothing from a record whose parts contradict each other (promise
// 6).
func TestRecordsThatWereEditedAreRefused(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		for _, tt := range edits {
			s := newFixture(t, sh)
			r := s.lose(1)[0]
			before := s.contents()
			var rec record
			if err := json.Unmarshal(r.Stored, &rec); err != nil {
				t.Fatal(err)
			}
			tt.edit(&r, &rec)
			var err error
			if r.Stored, err = json.Marshal(rec); err != nil {
				t.Fatal(err)
			}
			errs := s.backend.Restore(t.Context(), firstBlock, []ipam.Record{r}, backendtest.Permit)
			if errs[0] == nil || !strings.Contains(errs[0].Error(), tt.says) {
				t.Errorf("%s: Restore = %v, want %q", tt.name, errs[0], tt.says)
			}
			if diff := cmp.Diff(before, s.contents()); diff != "" {
				t.Errorf("%s: stored (-before +after):\n%s", tt.name, diff)
			}
		}
	})
}

// Restore writes no invalid block or handle from any record, and changes no other
// allocation.
func FuzzRecord(f *testing.F) {
	for _, sh := range shapes {
		b := mustRead(f, sh.stored(blocks, "10.0.0.0/30", threeOfFour))
		stored, err := new(Backend).recordAllocation(ipam.Allocation{Key: "3", Token: b.token(3), Group: "net.b"}, b,
			sh.stored(handles, "net.b", handleJSON(sh, `{"10.0.0.0/30":1}`)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(stored), "10.0.0.3", "3")
	}
	f.Fuzz(func(t *testing.T, stored []byte, ip, key string) {
		for _, sh := range shapes {
			s := newFixture(t, sh)
			whole := mustRead(t, sh.stored(blocks, "10.0.0.0/30", threeOfFour))
			free, err := whole.release([]int{3})
			if err != nil {
				t.Fatal(err)
			}
			s.put(blocks, "10.0.0.0/30", string(free.value()))
			s.backend.Restore(t.Context(), "10.0.0.0/30", []ipam.Record{{Pool: "10.0.0.0/30", Key: key, IP: ip, Stored: stored}}, backendtest.Permit)
			o, _ := s.look(blocks, "10.0.0.0/30")
			now := mustRead(t, o)
			for _, ordinal := range []int{0, 2} {
				if now.token(ordinal) != whole.token(ordinal) {
					t.Errorf("ordinal %d has another token than before", ordinal)
				}
			}
			for _, stored := range s.objects {
				if stored.kind == handles {
					if _, err := readHandle(stored.object); err != nil {
						t.Errorf("Restore wrote a handle that cannot be read: %v", err)
					}
				}
			}
		}
	})
}
