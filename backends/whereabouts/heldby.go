package whereabouts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A holder is an IPPool that may hold the addresses of overlapping reservations.
type holder struct {
	ipPool
	undecoded names    // if the IPPool cannot be decoded, the names in it
	odd       []string // keys that are not offsets in the range: each may be any of its addresses
}

// newHolder decodes an IPPool.
func newHolder(item json.RawMessage) holder {
	h := holder{ipPool: readPool(item)}
	if h.broken != nil {
		h.undecoded = namesIn(item)
		return h
	}
	for key := range h.allocations {
		if _, err := addressAt(h.prefix, key); err != nil {
			h.odd = append(h.odd, key)
		}
	}
	return h
}

func (h holder) version() version { return version{h.pool(), h.Metadata.ResourceVersion} }

// heldBy says, for each overlapping reservation, which IPPool holds or may hold its address for its
// owner, or lets a pod adopt it elsewhere; empty if there is none. It uses IPPools read after the given time.
// Without reservations, it reads nothing.
func (b *Overlapping) heldBy(ctx context.Context, some []*removal, since time.Time) ([]string, error) {
	if len(some) == 0 {
		return nil, nil
	}
	pools, err := b.poolsSince(ctx, since)
	if err != nil {
		return nil, err
	}
	held, networks := make([]string, len(some)), make([]string, len(some))
	for i, u := range some {
		networks[i] = networkOf(u.r)
	}
	for _, p := range pools {
		for i, u := range some {
			podRef := u.r.Owner.Pod.String()
			switch {
			case held[i] != "":
			case p.mayBeOf(networks[i]) && (p.undecoded.has(podRef) || p.holds(u.r.IP, podRef)):
				held[i] = fmt.Sprintf("pool %s holds the address for the same pod", p.pool())
			default:
				held[i] = p.elsewhere(u.r)
			}
		}
	}
	return held, nil
}

// mayBeOf reports whether the plugin may use the IPPool for the network. The name of an IPPool
// of a named network begins with that name. The name of an IPPool of an unnamed network may
// begin with a node, which cannot be told from a network.
func (h holder) mayBeOf(network string) bool {
	return network == "" || h.name == "" || strings.HasPrefix(h.name, network+"-")
}

// contains reports whether the address is of the range, which may be IPv4 written as IPv6, or contain
// such addresses.
func (h holder) contains(ip netip.Addr) bool { return h.prefix.Contains(h.asWritten(ip)) }

// asWritten returns the address in the IP version of the range.
func (h holder) asWritten(ip netip.Addr) netip.Addr {
	if h.prefix.Addr().Is6() && ip.Is4() {
		return netip.AddrFrom16(ip.As16())
	}
	return ip
}

// holds reports whether an entry of the IPPool holds, or may hold, the address for the pod.
func (h holder) holds(ip netip.Addr, podRef string) bool {
	if !h.contains(ip) {
		return false
	}
	ip = h.asWritten(ip)
	if entry, held := h.allocations[keyOf(h.prefix, ip)]; held && mayName(entry, podRef) {
		return true
	}
	for _, key := range h.odd {
		if mayName(h.allocations[key], podRef) {
			return true
		}
	}
	return false
}

// mayName reports whether an entry names the pod, or may: one that cannot be decoded may name
// every pod whose name is in it.
func mayName(stored json.RawMessage, podRef string) bool {
	var e entry
	if err := kube.Decode(stored, &e); err != nil {
		return namesIn(stored).has(podRef)
	}
	return e.PodRef == podRef
}

// names are names of pods. A backslash stands for any.
type names map[string]bool

func (n names) has(podRef string) bool { return n[podRef] || n[`\`] }

// namesIn returns the names of pods that a JSON document may contain: each of its texts, and each
// part of one that a name could be. It decodes the texts, and one that still has a backslash may be
// any name. It takes each part whole: a document that names web-10 does not name web-1.
func namesIn(document json.RawMessage) names {
	names := make(names)
	tokens := json.NewDecoder(bytes.NewReader(document)) // a part of an answer that was decoded is JSON
	for token, err := tokens.Token(); err == nil; token, err = tokens.Token() {
		if text, ok := token.(string); ok {
			if names[text] = true; strings.Contains(text, `\`) {
				names[`\`] = true
			}
			for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return !strings.ContainsRune(ofNames, r) }) {
				names[part] = true
			}
		}
	}
	return names
}

// ofNames are the characters of namespace/name.
const ofNames = "abcdefghijklmnopqrstuvwxyz0123456789-./"

// passed adds which NodeSlicePool has given a slice with the address of a reservation to a node that the
// reservation is not bound to. It lists the NodeSlicePools only if a reservation is bound to a node.
func (b *Overlapping) passed(ctx context.Context, some []*removal, held []string) error {
	if !slices.ContainsFunc(some, func(u *removal) bool { return u.r.Adoption == ipam.AdoptedOnNode }) {
		return nil
	}
	pools, err := list(ctx, b.client, sliceResource, readSlicePool)
	if err != nil {
		return err
	}
	for i, u := range some {
		namespace, _ := splitPool(u.r.Pool)
		for _, p := range pools {
			added := func(node string) bool { return !slices.Contains(nodesOf(u.r), node) }
			switch {
			case held[i] != "" || u.r.Adoption != ipam.AdoptedOnNode:
			case p.broken != nil:
				held[i] = fmt.Sprintf("%s %s may give the address to another node: %v", sliceKind, p.pool(), p.broken)
			case slices.ContainsFunc(p.nodesFor(namespace, networkOf(u.r), u.r.IP), added):
				held[i] = fmt.Sprintf("%s %s has given the address to another node", sliceKind, p.pool())
			}
		}
	}
	return nil
}

// poolsSince returns the IPPools as read after the given time. Concurrent calls share one
// reading.
func (b *Overlapping) poolsSince(ctx context.Context, since time.Time) ([]holder, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.read.After(since) {
		return b.pools, nil
	}
	now := time.Now()
	pools, err := b.readPools(ctx)
	if err != nil {
		return nil, err
	}
	b.pools, b.read = pools, now
	return pools, nil
}

// A version names one state of an IPPool: two IPPools with the same version are equal. The
// API server gives a resourceVersion to every object.
type version struct{ pool, resourceVersion string }

// readPools reads the IPPools. If they were read before, it reads only those that have changed:
// the IPPools of a large cluster have dozens of megabytes. If more than a quarter have changed,
// it reads all.
func (b *Overlapping) readPools(ctx context.Context) ([]holder, error) {
	all := func() ([]holder, error) { return list(ctx, b.client, poolResource, newHolder) }
	if len(b.pools) == 0 {
		return all()
	}
	known := make(map[version]holder, len(b.pools))
	for _, h := range b.pools {
		known[h.version()] = h
	}
	metadata, err := kube.ListMetadata(ctx, b.client, func(get *rest.Request) *rest.Request { return onResource(get, poolResource) })
	if err != nil {
		return nil, kube.Listed(err, poolResource, v1alpha1.SchemeGroupVersion.Group)
	}
	pools := make([]holder, len(metadata))
	changed := make(map[int]string) // the names, by index
	for i, m := range metadata {
		if m.ResourceVersion == "" {
			return all() // its metadata cannot be decoded
		}
		name, same := m.Namespace+"/"+m.Name, false
		if pools[i], same = known[version{name, m.ResourceVersion}]; !same {
			changed[i] = name
		}
	}
	if 4*len(changed) > len(metadata) {
		return all()
	}
	var g errgroup.Group
	g.SetLimit(b.atOnce)
	for i, name := range changed {
		g.Go(func() (err error) {
			pools[i], err = b.readPool(ctx, name)
			return err
		})
	}
	return pools, g.Wait()
}

// readPool reads one IPPool, and returns an empty one if it is gone. It asks for a list of one
// object, because the backend has no right to get an IPPool.
func (b *Overlapping) readPool(ctx context.Context, pool string) (holder, error) {
	namespace, name := splitPool(pool)
	found, err := kube.ListReduced(ctx, b.client, func(get *rest.Request) *rest.Request {
		return onResource(get, poolResource).Namespace(namespace).Param("fieldSelector", "metadata.name="+name)
	}, newHolder)
	for _, h := range found {
		if h.pool() == pool {
			return h, err
		}
	}
	return holder{}, kube.Listed(err, poolResource, v1alpha1.SchemeGroupVersion.Group)
}
