package crash_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A guest is a pod that came after a run was killed, with what real ADDs gave it.
type guest struct {
	pod      plugin.Pod
	lan      netip.Addr
	sandbox  calico.Sandbox
	ips      []netip.Addr // of the sandbox
	attached string       // the sandbox of the LAN
}

// guests are those of a world.
type guests struct {
	*kit.World
	plugin *plugin.Plugin
	all    []guest
}

// arrive creates a pod that is being set up, and has it get an address of the LAN
// and one of Calico's.
func (g *guests) arrive(names ...string) {
	g.Helper()
	for _, name := range names {
		one := guest{
			pod:     plugin.Pod{Namespace: kit.Shop, Name: name},
			sandbox: calico.NewSandbox(kit.Shop, name, kit.Node), attached: "new-" + name,
		}
		_, err := g.Cluster.CreatePod(g.Context(), kit.Shop, name, cluster.OnNode(kit.Node), cluster.Phase(corev1.PodPending))
		g.Must(err)
		ips, err := g.plugin.Add(g.Context(), kit.LAN, one.pod, one.attached, "net1")
		g.Must(err)
		one.lan = ips[0]
		one.ips, err = g.Add(g.Context(), one.sandbox)
		g.Must(err)
		g.all = append(g.all, one)
	}
}

// settle makes the pods run and show what they have.
func (g *guests) settle() {
	g.Helper()
	for _, one := range g.all {
		shows := append(one.sandbox.PodOptions(one.ips...), cluster.Phase(corev1.PodRunning), kit.Attached(one.lan.String()))
		g.Must(g.Cluster.UpdatePod(g.Context(), kit.Shop, one.pod.Name, shows...))
	}
}

// die deletes the pods, as a node does that is lost: without a DEL.
func (g *guests) die() {
	g.Helper()
	for _, one := range g.all {
		g.Must(g.Cluster.DeletePod(g.Context(), kit.Shop, one.pod.Name))
	}
}

// leave deletes the pods, and has the plugins take back what they got.
func (g *guests) leave() {
	g.Helper()
	g.die()
	for _, one := range g.all {
		g.Must(g.plugin.Del(g.Context(), kit.LAN, one.pod, one.attached, "net1"))
		g.Must(g.Del(g.Context(), one.sandbox))
	}
}

// theirs returns what of the stores is the guests'.
func (g *guests) theirs() map[string]string {
	g.Helper()
	all := map[string]string{}
	for place, holder := range g.Stores().Held() {
		for _, one := range g.all {
			if strings.Contains(holder, one.attached) || strings.Contains(holder, one.sandbox.ContainerID) ||
				strings.HasSuffix(place, "/"+one.lan.String()) {
				all[place] = holder
			}
		}
	}
	return all
}

// wantTheirs fails the test unless everything that the guests got is still theirs:
// the entries of the pools by their sandboxes, the reservations that name them, the
// blocks' addresses and their handles. A real ADD in a range over the same
// addresses does not get theirs (promise 1).
func (g *guests) wantTheirs(was map[string]string) {
	g.Helper()
	g.WantInUse()
	g.WantSingle()
	kit.WantT(g, "of the guests", was, g.theirs())
	stores := g.Stores().Owners()
	for _, one := range g.all {
		ref := one.pod.Namespace + "/" + one.pod.Name
		pool := strings.ReplaceAll(kit.LAN.Range, "/", "-")
		if got := stores[pool+" "+one.lan.String()]; got != ref+" "+one.attached {
			g.Errorf("%s has %s by its ADD, and the pool says %q", ref, one.lan, got)
		}
		if got := stores[one.lan.String()]; got != ref {
			g.Errorf("%s has %s by its ADD, and the reservation says %q", ref, one.lan, got)
		}
		g.wantTaken(one.lan.String())
	}
}

// wantTaken fails the test if a real ADD in an overlapping range gets the address.
func (g *guests) wantTaken(ip string) {
	g.Helper()
	overlapping := plugin.Network{Name: "other", Range: "10.0.0.0/8", RangeStart: ip, RangeEnd: ip}
	_, err := g.plugin.Add(g.Context(), overlapping, plugin.Pod{Namespace: kit.Shop, Name: "stranger"}, "sandbox-stranger", "net1")
	var refused *plugin.Error
	switch {
	case err == nil:
		g.Errorf("a pod in an overlapping range was given %s, which is in use: two pods have it", ip)
	case !errors.As(err, &refused) || !strings.Contains(refused.Msg, "Could not allocate IP in range"):
		g.Errorf("ADD for %s in an overlapping range: %v, want that none is left", ip, err)
	}
}

// Before a run that was killed is finished or undone, pods come and real ADDs give
// them addresses: a new pod, and one under the name of the pod that is gone. They
// keep what they got, whether a run or a restoration comes next, and no address has
// two owners. When they are gone, so is all that they had (promises 1, 8 and 10).
func TestEveryKillLeavesWhatGuestsGot(t *testing.T) {
	w, writes := fixture(t)
	p, err := plugin.New(w.Dir, w.Cluster.Kubeconfig)
	w.Must(err)
	after := func(at proxy.Point, then func(g *guests)) func() {
		return func() {
			w.Again()
			kill(w, at, runs(w))
			g := &guests{World: w, plugin: p}
			g.arrive("new", "gone-1")
			then(g)
			g.WantSingle()
			g.ConvergeTo(kit.Store.Held) // the order in which Calico gives out what is free has changed
			g.WantRemembered()
		}
	}
	for _, at := range points(writes) {
		w.Sub("runs "+at.String(), after(at, finished))
	}
	for _, at := range turns(writes) {
		w.Sub("a restoration "+at.String(), after(at, restored))
	}
}

// finished has a run come while the guests are set up, and one when they run.
func finished(g *guests) {
	g.Helper()
	was := g.theirs()
	g.Run(kit.ReleaseNow)
	g.wantTheirs(was)
	g.settle()
	g.Run(kit.ReleaseNow)
	g.wantTheirs(was)
	g.die()
}

// restored has the journal of the killed run restored while the guests run.
func restored(g *guests) {
	g.Helper()
	g.settle()
	was := g.theirs()
	journals := g.Journals()
	if len(journals) == 0 {
		g.Fatal("the killed run has no journal")
	}
	for _, id := range journals {
		g.Must(g.Memory.Unlock(g.Context()))
		process, err := g.Starts("restore", kit.ReleaseNow, "--run="+id)()
		g.Must(err)
		result, err := process.Wait()
		g.Must(err)
		if result.ExitCode != reap.ExitDone && result.ExitCode != reap.ExitPartial {
			g.Fatalf("exit code %d\n%s", result.ExitCode, result.Stderr)
		}
		if s := g.RestoreReportOf(result).Summary; s.Failed > 0 || s.Restored+s.Present+s.Taken != kit.Records || (s.Taken > 0) != (result.ExitCode == reap.ExitPartial) {
			g.Errorf("exit code %d with %+v", result.ExitCode, s)
		}
	}
	g.wantTheirs(was)
	g.leave()
}
