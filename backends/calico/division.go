package calico

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// defaultBlocksPerNode is how many blocks a node may have if Calico's settings do not say it, for
// each IP family (autoAssign in libcalico-go's ipam).
const defaultBlocksPerNode = 20

// An affinity is a node's claim on a block, which may not exist yet.
type affinity struct {
	node string // Calico's name for it
	cidr netip.Prefix
}

// shares are what decides which node gets which block, and when a freed address is given out again.
type shares struct {
	terms   *ipam.BlockTerms // nil if they are unknown
	unknown string           // why
	owned   []affinity

	// rest is how long Calico keeps an address from pods after its release, from 3.33 on. If that is
	// unknown, it is the longest time that Calico accepts.
	rest time.Duration
}

// longestRest is the longest rest that the definition of Calico's settings accepts.
const longestRest = 1200 * time.Second

// sharesBy returns what the stored settings of Calico's IPAM say. An account may lack the right to
// read them.
func sharesBy(settings []byte, err error) shares {
	if ipam.IsUnread(err) {
		return shares{unknown: "the files have no settings of Calico's IPAM"}
	}
	if err != nil {
		return shares{rest: longestRest, unknown: fmt.Sprintf("read the settings of Calico's IPAM: %v", err)}
	}
	s, err := readTerms(settings)
	if err != nil {
		return shares{rest: longestRest, unknown: fmt.Sprintf("the settings of Calico's IPAM: %v", err)}
	}
	return s
}

// restBy says for how long an address rests, and why.
func (s shares) restBy() string {
	if s.unknown != "" {
		return fmt.Sprintf("Calico may let an address rest for %v after its release: %s", s.rest, s.unknown)
	}
	return fmt.Sprintf("Calico lets an address rest for %v after its release (ipCooldownSeconds)", s.rest)
}

// ipamSettings are the settings of Calico's IPAM in the form of the API server, and in that of etcd.
type ipamSettings struct {
	Spec struct {
		Strict *bool `json:"strictAffinity"`
		Auto   *bool `json:"autoAllocateBlocks"`
		Max    int   `json:"maxBlocksPerHost"`
		Rest   int32 `json:"ipCooldownSeconds"`
	} `json:"spec"`
	Strict *bool `json:"strict_affinity"`
	Auto   *bool `json:"auto_allocate_blocks"`
	Max    int   `json:"maxBlocksPerHost"`
	Rest   int32 `json:"ipCooldownSeconds"`
}

// readTerms decodes the settings. Calico takes its defaults if there are none; in settings, what is
// missing is false.
func readTerms(stored []byte) (shares, error) {
	if stored == nil {
		return shares{terms: &ipam.BlockTerms{MaxPerNode: defaultBlocksPerNode}}, nil
	}
	var s ipamSettings
	if err := kube.Decode(stored, &s); err != nil {
		return shares{}, fmt.Errorf("decode: %w", err)
	}
	is := func(either ...*bool) bool {
		return slices.ContainsFunc(either, func(b *bool) bool { return b != nil && *b })
	}
	return shares{
		terms: &ipam.BlockTerms{
			Strict: is(s.Spec.Strict, s.Strict), Manual: !is(s.Spec.Auto, s.Auto),
			MaxPerNode: cmp.Or(s.Spec.Max, s.Max, defaultBlocksPerNode),
			Limited:    cmp.Or(s.Spec.Max, s.Max) != 0,
		},
		rest: time.Duration(max(s.Spec.Rest, s.Rest, 0)) * time.Second,
	}, nil
}

// settings implements datastore. The API group of Calico 3.32 has another name for them.
func (s kubernetes) settings(ctx context.Context) ([]byte, error) {
	plural := "ipamconfigs"
	if strings.HasPrefix(s.group, groupV3+"/") {
		plural = "ipamconfigurations"
	}
	all, err := s.resources(ctx, plural)
	if err != nil && !errors.Is(err, errUndefined) {
		return nil, err
	}
	for _, one := range all {
		if o, err := readObject(blocks, one.data); err == nil && o.name == "default" {
			return one.data, nil
		}
	}
	return nil, nil
}

// affinities implements datastore.
func (s kubernetes) affinities(ctx context.Context) ([]affinity, error) {
	stored, err := s.resources(ctx, "blockaffinities")
	if err != nil && !errors.Is(err, errUndefined) {
		return nil, err
	}
	var all []affinity
	for _, one := range stored {
		if a, ok := readAffinity(one.data); ok {
			all = append(all, a)
		}
	}
	return all, nil
}

// readAffinity decodes a BlockAffinity. It reports false for one that is of no node, or cannot be
// decoded, as it can't by Calico.
func readAffinity(stored []byte) (affinity, bool) {
	var fields struct {
		Spec struct {
			Node string `json:"node"`
			Type string `json:"type"`
			CIDR string `json:"cidr"`
		} `json:"spec"`
	}
	if kube.Decode(stored, &fields) != nil {
		return affinity{}, false
	}
	cidr, err := netip.ParsePrefix(fields.Spec.CIDR)
	ofNode := fields.Spec.Type == "" || fields.Spec.Type+":" == affineNode
	return affinity{fields.Spec.Node, cidr.Masked()}, err == nil && ofNode && fields.Spec.Node != ""
}

// settings implements datastore.
func (s etcd) settings(ctx context.Context) ([]byte, error) {
	o, err := s.key(ctx, settingsKey)
	if errors.Is(err, errGone) {
		return nil, nil
	}
	return o.raw, err
}

// affinities implements datastore. A key says it all: its value may be empty.
func (s etcd) affinities(ctx context.Context) ([]affinity, error) {
	return all(ctx, s, affinityPrefix, handlesListed, func(o object) (affinity, bool) { return affinityOfKey(o.name) })
}

// affinityOfKey reads the key HOST/ipv4/block/CIDR below the prefix, with a - for the / of the CIDR.
func affinityOfKey(key string) (affinity, bool) {
	node, rest, _ := strings.Cut(strings.TrimPrefix(key, affinityPrefix), "/")
	_, name, ok := strings.Cut(rest, "/block/")
	at := strings.LastIndex(name, "-")
	if !ok || at < 0 || !strings.HasPrefix(key, affinityPrefix) {
		return affinity{}, false
	}
	cidr, err := netip.ParsePrefix(name[:at] + "/" + name[at+1:])
	return affinity{node, cidr.Masked()}, err == nil
}

// divide says how nodes share the IPPool. The blocks in it are those of its network; kept are the
// addresses of IPReservations, if they are known. name returns the name that the cluster has for a
// node of Calico's.
func (s shares) divide(p ipPool, inside []netip.Prefix, kept ipam.Spans, known bool, name func(string) string) *ipam.Division {
	d := &ipam.Division{Terms: s.terms, Unknown: s.unknown, Owned: make(map[string][]netip.Prefix)}
	for _, a := range s.owned {
		if p.cidr.Contains(a.cidr.Addr()) {
			d.Owned[name(a.node)] = append(d.Owned[name(a.node)], a.cidr)
		}
	}
	if known && p.blockBits >= p.cidr.Bits() && p.blockBits <= p.cidr.Addr().BitLen() {
		d.Unclaimed = unclaimed(p, inside, kept.Within(p.cidr))
	}
	return d
}

// unclaimed counts the blocks of an IPPool that do not exist, and of which an address is not reserved.
func unclaimed(p ipPool, inside []netip.Prefix, kept ipam.Spans) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), uint(p.blockBits-p.cidr.Bits()))
	exist := slices.DeleteFunc(slices.Clone(inside), func(b netip.Prefix) bool { return b.Bits() != p.blockBits })
	n.Sub(n, big.NewInt(int64(len(exist))))
	host := uint(p.cidr.Addr().BitLen() - p.blockBits)
	size := new(big.Int).Lsh(big.NewInt(1), host)
	for _, span := range kept {
		first := new(big.Int).SetBytes(span.First.AsSlice())
		first.Add(first, size).Sub(first, big.NewInt(1)).Rsh(first, host)
		end := new(big.Int).SetBytes(span.Last.AsSlice())
		end.Add(end, big.NewInt(1)).Rsh(end, host)
		if whole := end.Sub(end, first); whole.Sign() > 0 {
			n.Sub(n, whole)
		}
		for _, b := range exist {
			if of := ipam.SpanOf(b); span.First.Compare(of.First) <= 0 && of.Last.Compare(span.Last) <= 0 {
				n.Add(n, big.NewInt(1))
			}
		}
	}
	return n
}
