package calico_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
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

// sequence returns the sequence number of a block; 0 if the block is from before 3.22.2.
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
