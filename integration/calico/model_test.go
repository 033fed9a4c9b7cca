package calico_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A state is everything that Calico stores.
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

// wantReleased fails the test unless Calico stores what it stored before, but for
// what the report says was released. Of a block with released addresses, those
// are free, at the tail of the queue; what belonged to them alone is gone; and
// the block was written once. Of their handles nothing is left in that block.
// Nothing else was even written.
func (s *fixture) wantReleased(before state, r *reap.Report) {
	s.Helper()
	after := s.state()
	ordinals, emptyHandles := released(r)
	freed := map[string][]string{} // by handle, the blocks
	for name, block := range before.blocks {
		var b map[string]any
		_ = decode(block.Content, &b) // of one that is corrupt nothing is released
		cidr, _ := b["cidr"].(string)
		if len(ordinals[cidr]) == 0 {
			continue
		}
		delete(before.versions, s.versionOf(calico.Block, name))
		delete(after.versions, s.versionOf(calico.Block, name))
		for _, id := range calico.Free(b, ordinals[cidr]) {
			freed[id] = append(freed[id], cidr)
		}
		s.wantContent(name, b, block, after.blocks[name])
		if err := calico.Invariants(after.blocks[name].Content); err != nil {
			s.Error(err)
		}
		delete(ordinals, cidr)
	}
	if len(ordinals) > 0 {
		s.Errorf("released of blocks that were not there: %v", ordinals)
	}

	for name, handle := range before.handles {
		var h map[string]any
		_ = decode(handle.Content, &h)
		id := s.handleID(name, h)
		counts, _ := h["block"].(map[string]any)
		if (len(freed[id]) == 0 || h["deleted"] == true) && !emptyHandles[id] {
			continue
		}
		key := s.versionOf(calico.Handle, name)
		delete(before.versions, key)
		for _, cidr := range freed[id] {
			delete(counts, cidr)
		}
		if len(counts) == 0 || emptyHandles[id] {
			continue // it has to be gone
		}
		delete(after.versions, key)
		s.wantContent(name, h, handle, after.handles[name])
	}
	if diff := cmp.Diff(before.versions, after.versions); diff != "" {
		s.Errorf("versions of what was not released (-want +got):\n%s", diff)
	}
}

// released are what a report says to be released: the ordinals by block, and the
// handles without an address.
func released(r *reap.Report) (ordinals map[string][]int, emptyHandles map[string]bool) {
	ordinals, emptyHandles = map[string][]int{}, map[string]bool{}
	for _, e := range r.Entries {
		if e.Outcome != "released" {
			continue
		}
		if e.IP == "" {
			emptyHandles[e.Key] = true
			continue
		}
		ordinal, err := strconv.Atoi(e.Key)
		if err != nil {
			panic(err)
		}
		ordinals[e.Pool] = append(ordinals[e.Pool], ordinal)
	}
	return ordinals, emptyHandles
}

// sequence is the sequence number of a block, 0 where it is of before 3.22.2.
func sequence(b map[string]any) uint64 {
	if b["sequenceNumber"] == nil {
		return 0
	}
	n, err := strconv.ParseUint(b["sequenceNumber"].(json.Number).String(), 10, 64)
	if err != nil {
		panic(err)
	}
	return n
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

// wantContent fails the test unless an object has the content, and the metadata
// that it had, after one write.
func (s *fixture) wantContent(name string, want map[string]any, before, after calico.Object) {
	s.Helper()
	if after.Content == "" {
		s.Errorf("%s is gone", name)
		return
	}
	var got map[string]any
	s.must(decode(after.Content, &got))
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("content of %s (-want +got):\n%s", name, diff)
	}
	if s.Etcd != nil {
		return
	}
	metadata := func(o calico.Object) (map[string]any, int) {
		var object struct{ Metadata map[string]any }
		s.must(decode(o.Raw, &object))
		generation := number(object.Metadata["generation"])
		for _, field := range []string{"generation", "resourceVersion", "managedFields"} {
			delete(object.Metadata, field)
		}
		return object.Metadata, generation
	}
	was, generationBefore := metadata(before)
	is, generation := metadata(after)
	if diff := cmp.Diff(was, is); diff != "" {
		s.Errorf("metadata of %s (-want +got):\n%s", name, diff)
	}
	if generation != generationBefore+1 {
		s.Errorf("%s was written %d times, want once", name, generation-generationBefore)
	}
}

// versionOf is what Versions calls an object.
func (s *fixture) versionOf(kind calico.Kind, name string) string {
	if s.Etcd != nil {
		return name
	}
	return string(kind) + "/" + name
}

// handleID is the ID of a handle as it is stored.
func (s *fixture) handleID(name string, content map[string]any) string {
	if s.Etcd != nil {
		return strings.TrimPrefix(name, s.HandleName(""))
	}
	id, _ := content["handleID"].(string)
	return id
}

// wantSound has calicoctl look again after a run: it has to find what it found
// before, without what was released and what that had for a handle. It returns what
// calicoctl finds.
func (s *fixture) wantSound(before *calico.CheckReport, r *reap.Report) *calico.CheckReport {
	s.Helper()
	after, gone := s.check(), map[netip.Addr]bool{}
	ordinals, _ := released(r)
	count := 0
	for _, all := range ordinals {
		count += len(all)
	}
	for _, e := range r.Entries {
		if e.Outcome == "released" && e.IP != "" {
			gone[netip.MustParseAddr(e.IP)] = true
		}
	}
	if len(gone) != count {
		s.Errorf("%d addresses of %d ordinals were released", len(gone), count)
	}
	allocations := maps.Clone(before.Allocations)
	maps.DeleteFunc(allocations, func(ip netip.Addr, _ []calico.Allocation) bool { return gone[ip] })
	if diff := cmp.Diff(addresses(allocations), addresses(after.Allocations)); diff != "" {
		s.Errorf("addresses that calicoctl finds allocated (-want +got):\n%s", diff)
	}
	for _, finding := range []struct {
		what          string
		before, after []string
	}{
		{"leaked", texts(before.Leaked), texts(after.Leaked)},
		{"in use and not allocated", texts(before.NotAllocated), texts(after.NotAllocated)},
		{"allocated without a handle", texts(before.NoHandle), texts(after.NoHandle)},
		{"handles without addresses", before.LeakedHandles, after.LeakedHandles},
		{"handles that are missing", before.MissingHandles, after.MissingHandles},
	} {
		for _, name := range finding.after {
			if !slices.Contains(finding.before, name) {
				s.Errorf("calicoctl finds anew, %s: %s\n%s", finding.what, name, after.Text)
			}
		}
	}
	return after
}

func addresses[V any](m map[netip.Addr]V) []string {
	return texts(slices.SortedFunc(maps.Keys(m), netip.Addr.Compare))
}

func texts(ips []netip.Addr) []string {
	all := []string{}
	for _, ip := range ips {
		all = append(all, ip.String())
	}
	return all
}

// wantHarmless plays what may come after a release: the DELs of the sandboxes
// whose addresses went, late as they are, which must find nothing to do; and an
// ADD, which must get an address that calicoctl has found to be free.
func (s *fixture) wantHarmless(r *reap.Report, found *calico.CheckReport) {
	s.Helper()
	before := s.state()
	for _, e := range r.Entries {
		if e.Outcome != "released" {
			continue
		}
		late := calico.Sandbox{Namespace: e.Owner.Namespace, Pod: e.Owner.Pod, Node: node, ContainerID: e.Owner.Sandbox}
		if late.ContainerID == "" {
			late.ContainerID = calico.NewContainerID()
		}
		if late.Pod == "" {
			late.Namespace, late.Pod = shop, "forgotten"
		}
		if err := s.Del(s.Context(), late); err != nil {
			s.Errorf("late DEL for %s: %v", e.IP, err)
		}
	}
	s.wantSame(before)
	sandbox, ip := s.leak("afterwards")
	if taken := found.Allocations[ip]; len(taken) > 0 {
		s.Errorf("the plugin gave %s, which %+v has", ip, taken)
	}
	s.must(s.Del(s.Context(), sandbox))
}

// lines are the verdict, the reason and the outcome of every entry, by address,
// or by the handle that has none.
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
