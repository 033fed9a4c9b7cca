package whereabouts_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// undo restores the last run with the binary, and waits until that exits.
func (f *fixture) undo() reap.Result {
	f.Helper()
	r, err := reap.New()
	f.must(err)
	p, err := r.Start(f.Context(), "restore", "--kubeconfig", f.kubeconfig, "--context", cluster.ContextName,
		"--state-namespace", cluster.PoolNamespace, "--run=latest", "--dry-run=false", "-o=json")
	f.must(err)
	got, err := p.Wait()
	f.must(err)
	return got
}

// released releases the first allocation of the network.
func (f *fixture) released(pod string) (ip string) {
	f.Helper()
	f.clear("neighbour")
	ip = f.leak(pod)
	f.mustReap(reap.ExitDone, "")
	f.wantOwners(nothing)
	f.toReaper.Reset()
	return ip
}

// Promise 1. The ADD of another pod has read everything at some step of a restore, and writes at that step or at any
// later one, in the same range or in another one of the network. The pod keeps what its ADD got, nobody
// else has it, and the restored pod has its entry with its reservation, or neither.
func TestEveryStepOfARestoreThatAnADDTakesTheAddressAt(t *testing.T) {
	f := newFixture(t)
	f.released("web-0")
	if got := f.undo(); got.ExitCode != reap.ExitDone {
		t.Fatalf("exit code %d\n%s", got.ExitCode, got.Stderr)
	}
	steps := f.toReaper.Requests()
	writes := 0
	for name, n := range map[string]plugin.Network{"the same range": network, "another range": overlapping("10.1.0.1")} {
		for first := 1; first <= len(steps); first++ {
			for at := first; at <= len(steps); at++ {
				if !storeWrite(steps[at-1]) || testing.Short() && first != 1 && first != at {
					continue
				}
				writes++
				f.each(fmt.Sprintf("in %s, read before %d %s, written before %d %s", name, first, steps[first-1], at, steps[at-1]),
					func() { f.overtake(n, first, at) })
			}
		}
	}
	if writes == 0 {
		t.Errorf("no writes among %v", steps)
	}
}

// overtake restores web-0, while the ADD of a neighbour reads before one request and writes before another.
func (f *fixture) overtake(n plugin.Network, first, at int) {
	f.Helper()
	ip := f.released("web-0")
	gate := proxy.NewGate()
	f.toPlugin.Before(proxy.Nth(1, proxy.On("patch ippools")), gate.Hook)
	var got string
	var err error
	done := make(chan struct{})
	f.toReaper.Before(proxy.Any, func(_ context.Context, r proxy.Request) proxy.Action {
		if r.Number == first {
			f.pod("neighbour", pending)
			go func() {
				defer close(done)
				got, err = f.addOne(n, "neighbour", newSandbox)
			}()
			select {
			case <-gate.Arrived():
			case <-done:
			}
		}
		if r.Number == at {
			gate.Open()
			<-done
		}
		return proxy.Pass()
	})
	result := f.undo()
	if err != nil {
		f.del(n, "neighbour", newSandbox) // as the runtime does
	}
	owners := f.owners()
	entry, reservation := owners[poolName(network.Range)+" "+ip] == ref("web-0")+" sandbox-web-0", owners[ip] == ref("web-0")
	if entry != reservation && err == nil { // a DEL deletes the reservation of any owner
		f.Errorf("web-0 has the entry: %v, and the reservation: %v\n%s", entry, reservation, result.Stdout)
	}
	if err == nil {
		f.wantWhole(n, "neighbour", newSandbox, got)
		if (entry || reservation) && got == ip {
			f.Errorf("web-0 and its neighbour have %s\n%s", ip, result.Stdout)
		}
	}
}
