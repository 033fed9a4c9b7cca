package storm

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// namespace is the namespace of a storm's pods.
const namespace = "storm"

// A sandbox is one sandbox of a pod. From the ADD's answer on, it has what the ADD got, and does
// not change.
type sandbox struct {
	pod   string // of namespace
	id    string
	place int // which of the networks, or of the nodes

	ip              netip.Addr
	began, answered time.Time // the ADD
	unreserved      bool      // the plugin's own log says that it gave ip without a reservation
}

// A fact is something that a store says about an owner: one of its entries.
type fact struct {
	kind string // such as kindEntry
	name string // unique in the kind
}

// A view is what a store said in one look: owners by fact.
type view struct {
	owners map[fact]string

	// retiring has the owners of the reservations that the reaper has put a tombstone into, and not
	// yet deleted or given back.
	retiring map[fact]string

	// broken is what no store should say about any owner.
	broken []string
}

// An ipam is a CNI plugin that manages addresses, and its store. Its methods may
// be called concurrently.
type ipam interface {
	// place draws the place of a worker's pod.
	place(random *rand.Rand, worker int) int

	// add runs a real ADD and records in s what it got. The error is a *plugin.Error if the plugin
	// refused. del runs a real DEL.
	add(ctx context.Context, s *sandbox) error
	del(ctx context.Context, s *sandbox) error

	// full reports whether an ADD's error is that no address is left.
	full(err error) bool

	// scheduled and running make the pod look as it does before its ADD, and when kubelet and the
	// plugins are done.
	scheduled(s *sandbox) []cluster.PodOption
	running(s *sandbox) []cluster.PodOption

	// owed returns what the store must say as long as the sandbox's pod exists.
	owed(s *sandbox) map[fact]string

	// look reads the store. The view has everything that exists throughout the call.
	look(ctx context.Context) (view, error)

	// lost says why the plugin alone is to blame for a finding; or "" if nothing proves that.
	// released has all releases that runs of the reaper have reported.
	lost(f finding, released []release) string
}
