package kit

import (
	"cmp"
	"maps"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Names of the world, and numbers of its entries.
const (
	Shop = "shop"    // the namespace of the pods
	Home = reap.Home // the namespace of ledger, journals and lock
	Node = "node-1"

	// Records is how many entries a run releases and writes into its journal.
	Records = 9

	// Waits is how many entries must wait.
	Waits = 3

	// ReservedIPSettings has a policy's settings of reserved IPs, below its backends.
	ReservedIPSettings = `  reservedIPs:
    resources:
    - resource: {group: network.example.com, version: v1alpha1, resource: reservedips}
      address: .status.ips[*]
      pod: .spec.pod
      ttl: .spec.ttl
      deletedAt: .status.deletedAt
`

	// Policy is the beginning of a policy, up to its grace period. Its limits are off, because most
	// entries here are leaks.
	Policy = `apiVersion: ip-reaper/v1alpha1
kind: ReapPolicy
dryRun: false
minAge: 0s
limits: {maxFraction: 1}
journal: {keep: 100, restoreHold: 0s}
backends:
` + ReservedIPSettings
	ReleaseNow = Policy + "gracePeriod: 0s\n"
	Patient    = Policy + "gracePeriod: 1h\n"

	// slow is the rule that makes some wait.
	slow = "rules:\n- {match: {pods: [\"slow-*\"]}, gracePeriod: 24h}\n"

	// InOrder makes a run release one pool at a time.
	InOrder = "--concurrency=1"
)

// The networks of Whereabouts, with one pool each. The first also has overlapping-range
// reservations.
var (
	LAN = plugin.Network{Name: "lan", Range: "10.1.0.0/24"}
	WAN = plugin.Network{Name: "wan", Range: "10.2.0.0/24", DisableOverlapping: true}
)

// A World is a cluster whose stores all have something for a run to release, alongside what is in use,
// and a reaper that talks to the API server through a proxy. The real plugins allocated the addresses.
//
// The pod live exists and shows an address of every store. The pod gone-1 does not exist, and had
// as many; gone-2 has left an IPv4 address, an address of the LAN and an expired reserved IP that
// kept both. A handle has lost its address. Because of a grace period of a day, a run must leave an
// address of the LAN of the pod slow-1, which does not exist, and the address of an older sandbox
// of the pod slow-0, which does. According to the ledger, all this has been so for more than an
// hour.
type World struct {
	*testing.T
	*calico.Datastore
	Proxy  *proxy.Proxy
	Memory reap.Memory
	Dir    string

	Before Store  // nothing is released
	End    Store  // everything is released, after Undisturbed
	Empty  string // the ID of the handle without an address

	kubeconfig map[string]string // of the reaper, by command; a run's is under ""
	seen       map[string]int64  // of the ledger, by Again
	aged       time.Duration     // the ledger, since then
	patient    []string          // what is in the ledger after Undisturbed
}

// NewWorld sets a world up in an empty cluster.
func NewWorld(t *testing.T) *World {
	t.Helper()
	d := calico.KubernetesT(t)
	w := &World{T: t, Datastore: d, Memory: reap.Memory{Cluster: d.Cluster, Namespace: Home}, Dir: t.TempDir()}
	for _, namespace := range []string{Shop, Home} {
		w.Must(d.Cluster.CreateNamespace(t.Context(), namespace))
	}
	var err error
	w.Proxy, err = proxy.Start(d.Cluster.Config)
	w.Must(err)
	t.Cleanup(w.Proxy.Stop)
	w.As(nil)
	w.fill()
	w.Before = w.Stores()
	w.remember()
	return w
}

// As makes the reaper's processes run as a service account. If it is nil, they run as the shipped
// accounts, with all rights that admission control leaves them.
func (w *World) As(a *reap.Account) {
	w.Helper()
	w.kubeconfig = map[string]string{}
	for command, account := range map[string]string{"": reap.RunAccount, "restore": reap.RestoreAccount} {
		config, err := reap.As(w.Cluster, account)
		w.Must(err)
		if a != nil {
			config = a.Config
		}
		w.kubeconfig[command], err = w.Cluster.KubeconfigFor(w.Proxy.Config(config))
		w.Must(err)
	}
}

// Must ends the test on an error.
func (w *World) Must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// Sub runs a subtest in the same world.
func (w *World) Sub(name string, test func()) {
	w.Helper()
	t := w.T
	defer func() { w.T = t }()
	t.Run(name, func(t *testing.T) {
		w.T = t
		test()
	})
}

// Each runs a subtest for each point.
func (w *World) Each(points []proxy.Point, test func(proxy.Point)) {
	w.Helper()
	for _, p := range points {
		w.Sub(p.String(), func() { test(p) })
	}
}

// Starts returns the Start of the reaper under a policy, which it installs. It leaves the lock alone.
func (w *World) Starts(command, policy string, args ...string) proxy.Starter {
	return w.StartsWith("", command, policy, args...)
}

// StartsWith is Starts with standard input.
func (w *World) StartsWith(stdin, command, policy string, args ...string) proxy.Starter {
	return func() (*reap.Process, error) {
		r, err := reap.New()
		if err != nil {
			return nil, err
		}
		r.Stdin = stdin
		if err := w.Memory.InstallPolicy(w.Context(), policy+slow); err != nil {
			return nil, err
		}
		all := []string{
			command, "--kubeconfig=" + cmp.Or(w.kubeconfig[command], w.kubeconfig[""]), "--context=" + cluster.ContextName, "--state-namespace=" + Home,
			"-o=json",
		}
		switch command {
		case "run":
			all = append(all, reap.ByFile(policy)...)
		case "restore":
			all = append(all, "--dry-run=false")
		}
		return r.Start(w.Context(), append(all, args...)...)
	}
}

// Ends starts a process and waits until it exits, which must be with the code.
func (w *World) Ends(code int, start proxy.Starter) reap.Result {
	w.Helper()
	p, err := start()
	w.Must(err)
	result, err := p.Wait()
	w.Must(err)
	w.WantExit(code, result)
	return result
}

// WantExit ends the test unless a process has exited with the code.
func (w *World) WantExit(code int, result reap.Result) {
	w.Helper()
	if result.ExitCode != code {
		w.Fatalf("exit code %d, want %d\n%s%s", result.ExitCode, code, result.Stdout, result.Stderr)
	}
}

// Run removes the lock and runs under the policy. The run must succeed.
func (w *World) Run(policy string, args ...string) reap.Result {
	w.Helper()
	w.Must(w.Memory.Unlock(w.Context()))
	return w.Ends(reap.ExitDone, w.Starts("run", policy, append(args, InOrder)...))
}

// Stores reads all stores.
func (w *World) Stores() Store {
	w.Helper()
	return StoreT(w, w.Cluster)
}

// Put makes the stores hold this and nothing else.
func (w *World) Put(s Store) {
	w.Helper()
	w.Must(s.Put(w.Context(), w.Cluster))
}

// Again resets the world to its beginning.
func (w *World) Again() {
	w.Helper()
	w.Proxy.Reset()
	w.Must(w.Memory.Forget(w.Context()))
	w.Put(w.Before)
	w.remember()
}

// remember makes a run see what is ownerless and release nothing, and moves that an hour into the
// past.
func (w *World) remember() {
	w.Helper()
	w.Must(w.Memory.BeginLedger(w.Context()))
	w.Run(Patient)
	w.Age()
	var err error
	w.seen, err = w.Memory.Seen(w.Context())
	w.Must(err)
	w.aged = 0
	w.Proxy.Reset()
}

// Age makes the ledger an hour older.
func (w *World) Age() {
	w.Helper()
	w.Must(w.Memory.Age(w.Context(), time.Hour))
	w.aged += time.Hour
}

// Journals returns the IDs of the runs that have journals.
func (w *World) Journals() []string {
	w.Helper()
	runs, err := w.Memory.Journals(w.Context())
	w.Must(err)
	return runs
}

// WantRemembered fails the test unless the ledger still knows since when everything that an
// undisturbed run leaves in it has waited.
func (w *World) WantRemembered() {
	w.Helper()
	now, err := w.Memory.Seen(w.Context())
	w.Must(err)
	want, got := map[string]int64{}, map[string]int64{}
	for _, id := range w.patient {
		want[id], got[id] = w.seen[id]-int64(w.aged.Seconds()), now[id]
	}
	if !maps.Equal(want, got) {
		w.Errorf("the ledger says that those that wait were first seen at %v, want %v", got, want)
	}
}
