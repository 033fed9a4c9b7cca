package storm

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// namespace is where the pods of a storm are.
const namespace = "storm"

// A sandbox is one sandbox of a pod. What its ADD got is in it from the ADD's
// answer on, and does not change.
type sandbox struct {
	pod   string // of namespace
	id    string
	place int // which of the networks, or of the nodes

	ip              netip.Addr
	began, answered time.Time // the ADD
	unreserved      bool      // the plugin's own log says that it gave ip without a reservation
}

// A fact is something that a store says about an owner: one entry of it.
type fact struct {
	kind string // such as kindEntry
	name string // unique in the kind
}

// A view is what a store said in one look: the owner by fact.
type view struct {
	owners map[fact]string

	// retiring is the owner by the reservations that the reaper has put a
	// tombstone into, and not yet deleted or given back.
	retiring map[fact]string

	// broken is what no store should say, of any owner.
	broken []string
}

// An ipam is a CNI plugin that manages addresses, and its store. Its methods may
// be called concurrently.
type ipam interface {
	// prepare makes what pods need, on an empty cluster.
	prepare(ctx context.Context) error

	// place draws where a pod of a worker is.
	place(random *rand.Rand, worker int) int

	// add runs a real ADD and notes in s what it got. The error is a
	// *plugin.Error if the plugin refused. del runs a real DEL.
	add(ctx context.Context, s *sandbox) error
	del(ctx context.Context, s *sandbox) error

	// full says whether an ADD's error is that no address is left.
	full(err error) bool

	// scheduled and running make the pod what it is before its ADD, and when
	// kubelet and the plugins are done.
	scheduled(s *sandbox) []cluster.PodOption
	running(s *sandbox) []cluster.PodOption

	// owed is what the store has to say for as long as the sandbox's pod is there.
	owed(s *sandbox) map[fact]string

	// look reads the store. What is there for as long as the call takes is in the view.
	look(ctx context.Context) (view, error)

	// lost says why the plugin alone is the reason that the
	// store owes this to the sandbox; or "", if nothing proves that. Released
	// are all releases that runs of the reaper have reported.
	lost(f finding, released []release) string
}
