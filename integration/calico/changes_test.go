package calico_test

import (
	"errors"
	"net/netip"
	"strconv"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	backend "github.com/ip-reaper/ip-reaper/backends/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// backend returns the backend over the fixture's datastore.
func (s *fixture) backend() *backend.Backend {
	s.Helper()
	config := rest.CopyConfig(s.Cluster.Config)
	config.QPS = -1
	b, err := s.engine().Blocks(config)
	s.must(err)
	return b
}

// A change is something that happens to addresses between the confirmation and
// the write: each has the number of leaked addresses that it is about.
type change struct {
	name   string
	leaked func(s *fixture) []netip.Addr
	happen func(s *fixture, leaked []netip.Addr)
	want   []error // of each address; nil is released

	// after is what the block has to be then, made of what it is just before the
	// release; nil where it must not be written.
	after func(s *fixture, b map[string]any, leaked []netip.Addr)
}

// leftOf is the block without any of the leaked addresses.
func leftOf(s *fixture, b map[string]any, leaked []netip.Addr) {
	var ordinals []int
	for _, ip := range leaked {
		ordinals = append(ordinals, s.ordinal(ip))
	}
	free(b, ordinals)
}

// What changes in between stays, and what does not goes all the same (23 to 30).
func TestReleaseComparesWithWhatWasListed(t *testing.T) {
	one := func(s *fixture) []netip.Addr {
		_, ip := s.leak("gone")
		return []netip.Addr{ip}
	}
	two := func(s *fixture) []netip.Addr { return append(one(s), one(s)...) }
	three := func(s *fixture) []netip.Addr { // of one sandbox
		_, ip := s.leak("gone")
		return []netip.Addr{ip, s.share(ip), s.share(ip)}
	}
	rewritten := func(edit func(attribute map[string]any)) func(*fixture, []netip.Addr) {
		return func(s *fixture, leaked []netip.Addr) {
			s.editBlock(leaked[0], func(b map[string]any) {
				edit(s.attributeOf(b, leaked[0]))
				b["sequenceNumber"] = nextNumber(b["sequenceNumber"])
			})
		}
	}
	each(t, func(s *fixture) {
		var sandbox calico.Sandbox
		leakFixed := func(s *fixture) []netip.Addr {
			sandbox = calico.NewSandbox(shop, "gone", node)
			ips := s.add(sandbox)
			sandbox.IP = ips[0]
			return ips
		}
		for _, c := range []change{
			{name: "nothing", leaked: two, happen: func(*fixture, []netip.Addr) {}, want: []error{nil, nil}, after: leftOf},
			{
				name: "freed and given again, with the same handle (23)", leaked: leakFixed, want: []error{reaper.ErrChanged},
				happen: func(s *fixture, _ []netip.Addr) { s.must(s.Del(s.Context(), sandbox)); s.add(sandbox) },
			},
			{
				name: "given again in a block that was made anew (24)", leaked: leakFixed, want: []error{reaper.ErrChanged},
				happen: func(s *fixture, leaked []netip.Addr) {
					for kind, name := range map[calico.Kind]string{
						calico.Block:    s.BlockName(s.blockOf(leaked[0])),
						calico.Affinity: s.AffinityName(node, s.blockOf(leaked[0])),
						calico.Handle:   s.HandleName(sandbox.Handle()),
					} {
						s.must(s.Delete(s.Context(), kind, name))
					}
					s.add(sandbox)
				},
			},
			{
				name: "others came and went in the block (25)", leaked: two, want: []error{nil, nil}, after: leftOf,
				happen: func(s *fixture, _ []netip.Addr) {
					other, _ := s.leak("other")
					s.leak("one-more")
					s.must(s.Del(s.Context(), other))
				},
			},
			{
				name: "another handle (27)", leaked: one, want: []error{reaper.ErrChanged},
				happen: rewritten(func(a map[string]any) { a["handle_id"] = "k8s-pod-network.another" }),
			},
			{
				name: "no handle (27)", leaked: one, want: []error{reaper.ErrChanged},
				happen: rewritten(func(a map[string]any) { a["handle_id"] = nil }),
			},
			// Calico moves machines without a new sequence number.
			{
				name: "another owner", leaked: one, want: []error{reaper.ErrChanged},
				happen: rewritten(func(a map[string]any) { a["secondary"].(map[string]any)["pod"] = "bystander" }),
			},
			{
				name: "another owner to be (42)", leaked: one, want: []error{reaper.ErrChanged},
				happen: rewritten(func(a map[string]any) { a["alternateOwnerAttrs"] = map[string]any{"pod": "bystander"} }),
			},
			{
				name: "freed, to rest (31)", leaked: one, want: []error{reaper.ErrChanged},
				happen: rewritten(func(a map[string]any) {
					clear(a)
					a["releasedAt"] = "2026-01-01T00:00:00Z"
				}),
			},
			{
				name: "one of three of a handle was given again (28)", leaked: three, want: []error{nil, reaper.ErrChanged, nil},
				happen: func(s *fixture, leaked []netip.Addr) {
					s.editBlock(leaked[0], func(b map[string]any) {
						b["sequenceNumberForAllocation"].(map[string]any)[strconv.Itoa(s.ordinal(leaked[1]))] = b["sequenceNumber"]
						b["sequenceNumber"] = nextNumber(b["sequenceNumber"])
					})
				},
				after: func(s *fixture, b map[string]any, leaked []netip.Addr) {
					free(b, []int{s.ordinal(leaked[0]), s.ordinal(leaked[2])})
				},
			},
			{
				name: "freed (29)", leaked: leakFixed, want: []error{nil},
				happen: func(s *fixture, _ []netip.Addr) { s.must(s.Del(s.Context(), sandbox)) },
			},
			{
				name: "the block is gone (29)", leaked: one, want: []error{nil},
				happen: func(s *fixture, leaked []netip.Addr) {
					s.must(s.Delete(s.Context(), calico.Block, s.BlockName(s.blockOf(leaked[0]))))
				},
			},
			{
				name: "the block is half deleted", leaked: one, want: []error{reaper.ErrKept},
				happen: func(s *fixture, leaked []netip.Addr) {
					s.editBlock(leaked[0], func(b map[string]any) { b["deleted"] = true })
				},
			},
			{
				name: "the block was broken (35)", leaked: one, want: []error{reaper.ErrKept},
				happen: func(s *fixture, leaked []netip.Addr) {
					s.editBlock(leaked[0], func(b map[string]any) { b["unallocated"] = b["unallocated"].([]any)[1:] })
				},
			},
		} {
			leaked := c.leaked(s)
			b := s.backend()
			warrants := s.warrants(b, leaked)
			c.happen(s, leaked)
			before := s.state()
			errs := b.Release(s.Context(), warrants)
			for i, err := range errs {
				if !errors.Is(err, c.want[i]) {
					s.Errorf("%s: the answer for %s is %v, want %v", c.name, leaked[i], err, c.want[i])
				}
			}
			if c.after == nil {
				s.wantSame(before)
			} else {
				s.wantBlock(before, leaked, c.after)
			}
			if s.Failed() {
				s.Fatal(c.name)
			}
			s.empty()
		}
	})
}

// Addresses may share an attribute: it goes with the last of them, and the handle
// counts what is left (26). A list that has an address twice is refused (30): the
// engine makes none, and if it did, something else would be wrong with it.
func TestAddressesThatShareAnAttribute(t *testing.T) {
	each(t, func(s *fixture) {
		sandbox, ip := s.leak("gone")
		leaked := []netip.Addr{ip, s.share(ip), s.share(ip)}
		cidr := s.blockOf(ip)
		s.must(s.PutHandle(s.Context(), sandbox.Handle(), map[netip.Prefix]int{cidr: 3}))
		b := s.backend()
		for _, tt := range []struct {
			release []netip.Addr
			want    error
			left    int // in the handle
		}{
			{release: leaked[1:2], left: 2},
			{release: []netip.Addr{leaked[2], leaked[0], leaked[2]}, want: reaper.ErrKept, left: 2},
			{release: []netip.Addr{leaked[2], leaked[0]}},
		} {
			before := s.state()
			for i, err := range b.Release(s.Context(), s.warrants(b, tt.release)) {
				if !errors.Is(err, tt.want) {
					s.Errorf("the answer for %s of %v is %v, want %v", tt.release[i], tt.release, err, tt.want)
				}
			}
			if tt.want != nil {
				s.wantSame(before)
			} else {
				s.wantBlock(before, tt.release, leftOf)
			}
			var h struct {
				Block map[netip.Prefix]int `json:"block"`
			}
			o, err := s.Get(s.Context(), calico.Handle, s.HandleName(sandbox.Handle()))
			if tt.left == 0 {
				if !errors.Is(err, calico.ErrNotFound) {
					s.Errorf("the handle of nothing is still there: %s, %v", o.Content, err)
				}
				continue
			}
			s.must(err)
			s.must(decode(o.Content, &h))
			if len(h.Block) != 1 || h.Block[cidr] != tt.left {
				s.Errorf("the handle counts %v, want %d in %s", h.Block, tt.left, cidr)
			}
		}
		s.clean()
		s.must(s.Del(s.Context(), sandbox))
		s.clean()
	})
}

// warrants confirms that no pod has the addresses.
func (s *fixture) warrants(b reaper.Backend, leaked []netip.Addr) []reaper.Warrant {
	s.Helper()
	pods := new(backendtest.Pods)
	pods.Add(reaper.Pod{Ref: reaper.PodRef{Namespace: "default", Name: "bystander"}})
	var rs []reaper.Allocation
	for _, ip := range leaked {
		rs = append(rs, reaper.Allocation{Pool: s.blockOf(ip).String(), Key: strconv.Itoa(s.ordinal(ip))})
	}
	return backendtest.Warrants(s, b, pods, rs...)
}

// wantBlock fails the test unless the block is what after makes of what it was.
func (s *fixture) wantBlock(before state, leaked []netip.Addr, after func(*fixture, map[string]any, []netip.Addr)) {
	s.Helper()
	name := s.BlockName(s.blockOf(leaked[0]))
	var b map[string]any
	s.must(decode(before.blocks[name].Content, &b))
	after(s, b, leaked)
	now := s.state().blocks[name]
	s.wantContent(name, b, before.blocks[name], now)
	if err := calico.Invariants(now.Content); err != nil {
		s.Error(err)
	}
}

// empty removes every block, handle and affinity.
func (s *fixture) empty() {
	s.Helper()
	for _, kind := range []calico.Kind{calico.Block, calico.Handle, calico.Affinity} {
		all, err := s.List(s.Context(), kind)
		s.must(err)
		for name := range all {
			s.must(s.Delete(s.Context(), kind, name))
		}
	}
}
