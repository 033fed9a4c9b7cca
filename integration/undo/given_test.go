package undo_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A guest is a pod that came after a run was killed, with what real ADDs gave it.
type guest struct {
	pod      plugin.Pod
	lan      netip.Addr
	sandbox  calico.Sandbox
	attached string // the sandbox of the lan
}

// arrives has a pod get an address of the lan and one of Calico's.
func (w *world) arrives(p *plugin.Plugin, name string) guest {
	w.Helper()
	g := guest{pod: plugin.Pod{Namespace: shop, Name: name}, sandbox: calico.NewSandbox(shop, name, node), attached: "new-" + name}
	ips, err := p.Add(w.Context(), lan, g.pod, g.attached, "net1")
	w.must(err)
	g.lan = ips[0]
	ips, err = w.Add(w.Context(), g.sandbox)
	w.must(err)
	w.must(w.CreatePod(w.Context(), g.sandbox, ips, cluster.Networks(cluster.Attached(shop+"/lan", "net1", g.lan.String()))))
	return g
}

// leaves deletes a pod, and has the plugins take back what it got.
func (w *world) leaves(p *plugin.Plugin, g guest) {
	w.Helper()
	w.must(w.Cluster.DeletePod(w.Context(), shop, g.pod.Name))
	w.must(p.Del(w.Context(), lan, g.pod, g.attached, "net1"))
	w.must(w.Del(w.Context(), g.sandbox))
}

// Wherever a run was killed, and whatever the plugins gave out since then: to a pod
// that is new, and to one that comes back under the name of the one that is gone. A
// restoration leaves all that to whom it was given, and it stays so that the plugins
// can take it back. No address is anybody's twice (promise 1).
func TestRestorationTakesNothingFromPodsThatCameAfterAKilledRun(t *testing.T) {
	w := newWorld(t, calico.KubernetesT(t))
	p, err := plugin.New(w.dir, w.Cluster.Kubeconfig)
	w.must(err)
	w.each(turns(w.undisturbed()), func(at point) {
		w.again()
		w.killed(at, w.starts)
		guests := []guest{w.arrives(p, "new"), w.arrives(p, "gone-1")}
		was := w.stores().held()
		for _, id := range w.journals() {
			w.unlock()
			result, err := w.start("restore", releaseNow, "--run="+id).Wait()
			w.must(err)
			if result.ExitCode != reap.ExitDone && result.ExitCode != reap.ExitPartial {
				w.Fatalf("exit code %d\n%s", result.ExitCode, result.Stderr)
			}
			if s := w.reportOf(result).Summary; s.Failed > 0 || s.Restored+s.Present+s.Taken != records || (s.Taken > 0) != (result.ExitCode == reap.ExitPartial) {
				w.Errorf("exit code %d with %+v", result.ExitCode, s)
			}
		}
		w.wantInUse()
		w.wantHeld(was, guests)
		for _, g := range guests {
			w.leaves(p, g)
		}
		w.wantSingle()
		w.runUntil(stores.held) // the order in which Calico gives out what is free has changed
	})
}

// wantHeld fails the test unless everything that the guests got is still theirs.
func (w *world) wantHeld(was map[string]string, guests []guest) {
	w.Helper()
	is := w.stores().held()
	for place, holder := range was {
		for _, g := range guests {
			theirs := strings.Contains(holder, g.attached) || strings.Contains(holder, g.sandbox.ContainerID) ||
				strings.HasSuffix(place, "/"+g.lan.String())
			if theirs && is[place] != holder {
				w.Errorf("%s: %q, and %s got it as %q", place, is[place], g.pod.Name, holder)
			}
		}
	}
	w.wantSingle()
}

// wantSingle fails the test unless every block is what Calico relies on, and each
// allocation across ranges names the pod that the pool names.
func (w *world) wantSingle() {
	w.Helper()
	all := w.stores()
	entries := all.held()
	for path, o := range all {
		switch o.name {
		case "ipamblocks":
			fields, _ := o.parts()
			if err := calico.Invariants(string(fields["spec"])); err != nil {
				w.Errorf("%s: %v", path, err)
			}
		case "overlappingrangeipreservations":
			_, host, _ := strings.Cut(o.objectName, "10.1.0.")
			entry := entries["/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/"+cluster.PoolNamespace+"/ippools/10.1.0.0-24 "+host]
			_, owner, _ := strings.Cut(o.settled(), `"podref":`)
			owner, _, _ = strings.Cut(owner, "}")
			if entry != "" && !strings.Contains(entry, owner) {
				w.Errorf("%s is of %s, and the pool has %s", o.objectName, owner, entry)
			}
		}
	}
}
