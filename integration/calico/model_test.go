package calico_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A state has everything that Calico stores.
type state struct {
	blocks, handles map[string]calico.Object
	versions        map[string]string // of each object of any kind
}

// state reads everything.
func (s *fixture) state() state {
	s.Helper()
	var st state
	var err error
	st.blocks, err = s.List(s.Context(), calico.Block)
	s.must(err)
	st.handles, err = s.List(s.Context(), calico.Handle)
	s.must(err)
	st.versions, err = s.Versions(s.Context())
	s.must(err)
	return st
}

// wantSame fails the test if anything was written since.
func (s *fixture) wantSame(before state) {
	s.Helper()
	if diff := cmp.Diff(before.versions, s.state().versions); diff != "" {
		s.Errorf("versions (-before +after):\n%s", diff)
	}
}

// snapshot returns the version of everything that Calico stores, and of blocks and handles what
// they are. An allocation has its attribute, its sequence number and its handle without the
// handle's version, which changes when it is restored. A block has everything else except the
// queue of free ordinals and the number of its writes.
func (s *fixture) snapshot() map[string]string {
	s.Helper()
	st := s.state()
	snapshot := st.versions
	handles, used := map[string]string{}, map[string]bool{}
	for name, o := range st.handles {
		var h map[string]any
		s.must(decode(o.Content, &h))
		handles[s.handleID(name, h)] = fmt.Sprint(h) // a restore writes its blocks in any order
		delete(snapshot, s.versionOf(calico.Handle, name))
	}
	for name, o := range st.blocks {
		s.must(calico.Invariants(o.Content))
		var b struct {
			Allocations []*int
			Attributes  []json.RawMessage
			Sequences   map[string]json.Number `json:"sequenceNumberForAllocation"`
		}
		var rest map[string]any
		s.must(decode(o.Content, &b))
		s.must(decode(o.Content, &rest))
		for ordinal, index := range b.Allocations {
			if index == nil {
				continue
			}
			var attribute struct {
				Handle string `json:"handle_id"`
			}
			s.must(decode(string(b.Attributes[*index]), &attribute))
			place := backendtest.Place(ipam.Allocation{Pool: rest["cidr"].(string), Key: strconv.Itoa(ordinal)})
			snapshot[place] = fmt.Sprintf("%s, allocated at %s, %s: %s", b.Attributes[*index],
				b.Sequences[strconv.Itoa(ordinal)], attribute.Handle, handles[attribute.Handle])
			used[attribute.Handle] = true
		}
		for _, field := range []string{"allocations", "unallocated", "attributes", "sequenceNumber", "sequenceNumberForAllocation"} {
			delete(rest, field)
		}
		snapshot[s.versionOf(calico.Block, name)] = fmt.Sprint(rest)
	}
	for id, handle := range handles {
		if !used[id] {
			snapshot["handle "+id] = handle
		}
	}
	return snapshot
}

func number(n any) int {
	i, err := strconv.Atoi(n.(json.Number).String())
	if err != nil {
		panic(err)
	}
	return i
}

// decode keeps every digit.
func decode(text string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// versionOf returns the name of an object in Versions.
func (s *fixture) versionOf(kind calico.Kind, name string) string {
	if s.Etcd != nil {
		return name
	}
	return string(kind) + "/" + name
}

// handleID returns the ID of a handle as stored.
func (s *fixture) handleID(name string, content map[string]any) string {
	if s.Etcd != nil {
		return strings.TrimPrefix(name, s.HandleName(""))
	}
	id, _ := content["handleID"].(string)
	return id
}

func texts(ips []netip.Addr) []string {
	all := []string{}
	for _, ip := range ips {
		all = append(all, ip.String())
	}
	return all
}

// lines returns the verdict, the reason and the outcome of every entry, by address, or by handle
// for those without one.
func lines(r *reap.Report) map[string]string {
	all := map[string]string{}
	for _, e := range r.Entries {
		name := e.IP
		if name == "" {
			name = e.Key
		}
		if _, twice := all[name]; twice {
			panic(fmt.Sprintf("%s stands in the report twice", name))
		}
		all[name] = strings.Join([]string{e.Decision, e.Reason, e.Outcome}, " ")
	}
	return all
}
