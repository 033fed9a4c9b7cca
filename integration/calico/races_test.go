package calico_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Another program writes the block between the reaper's last read and its write: a real ADD or DEL,
// or a person. The reaper's write is refused, and what it then does is right for the block as it is
// now (promises 1 and 4).
func TestBlockThatIsWrittenWhileTheReaperReleasesFromIt(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(s *fixture, orphan calico.Sandbox, ip netip.Addr) // the orphan's pod is "gone"
		want string                                                 // the outcome of the orphan's address
	}{{
		name: "an ADD for another pod",
		do:   func(s *fixture, _ calico.Sandbox, _ netip.Addr) { s.live("new") },
		want: "released",
	}, {
		name: "the orphan's own DEL",
		do:   func(s *fixture, orphan calico.Sandbox, _ netip.Addr) { s.must(s.Del(s.Context(), orphan)) },
		want: "released",
	}, {
		name: "the orphan's own DEL, and an ADD that gives the address to a pod of its name",
		do: func(s *fixture, orphan calico.Sandbox, ip netip.Addr) {
			s.must(s.Del(s.Context(), orphan))
			s.liveAt("gone", calico.NewContainerID(), ip)
		},
		want: "changed",
	}, {
		name: "a second ADD for the orphan's sandbox, under the same handle",
		do: func(s *fixture, orphan calico.Sandbox, _ netip.Addr) {
			ips, err := s.Add(s.Context(), orphan)
			s.must(err)
			s.must(s.CreatePod(s.Context(), orphan, ips))
		},
		want: "released",
	}} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(s *fixture) {
				orphan, ip := s.leak("gone")
				_, other := s.leak("also-gone")
				_, web := s.live("web")
				var want map[string]bool
				report := s.reapWhile(releaseNow, func() {
					tt.do(s, orphan, ip)
					want = s.held()
				})
				s.wantOutcomes(report, map[netip.Addr]string{ip: tt.want, other: "released", web: "kept"})
				delete(want, other.String())
				if tt.want == "released" {
					delete(want, ip.String())
				}
				s.wantWhole(want)
			})
		})
	}
}

// The block is emptied and deleted between the reaper's last read and its write, as by Calico's
// garbage collection, and made again. Its sequence numbers start from the time in nanoseconds, so
// an allocation that otherwise looks the same is distinct.
func TestBlockThatIsMadeAgainWhileTheReaperReleasesFromIt(t *testing.T) {
	for name, do := range map[string]func(s *fixture, orphan calico.Sandbox, ip netip.Addr){
		"by an ADD for the same sandbox": func(s *fixture, orphan calico.Sandbox, ip netip.Addr) {
			s.must(s.Del(s.Context(), orphan))
			s.must(s.Delete(s.Context(), calico.Block, s.BlockName(s.blockOf(ip))))
			s.must(s.Delete(s.Context(), calico.Affinity, s.AffinityName(node, s.blockOf(ip))))
			s.liveAt("gone", orphan.ContainerID, ip)
		},
		"with the same attributes": func(s *fixture, orphan calico.Sandbox, ip netip.Addr) {
			o, err := s.Get(s.Context(), calico.Block, s.BlockName(s.blockOf(ip)))
			s.must(err)
			s.must(s.Delete(s.Context(), calico.Block, o.Name))
			s.must(s.Put(s.Context(), calico.Block, o.Name, o.Content))
			s.must(s.Edit(s.Context(), calico.Block, o.Name, func(b map[string]any) {
				var old block
				s.must(json.Unmarshal([]byte(o.Content), &old))
				for ordinal := range old.Sequences {
					old.Sequences[ordinal] += 1_000_000_007
				}
				b["sequenceNumber"], b["sequenceNumberForAllocation"] = old.Sequence+1_000_000_007, old.Sequences
			}))
			s.must(s.CreatePod(s.Context(), orphan, []netip.Addr{ip}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(s *fixture) {
				orphan, ip := s.leak("gone")
				report := s.reapWhile(releaseNow, func() { do(s, orphan, ip) })
				s.wantOutcomes(report, map[netip.Addr]string{ip: "changed"})
				s.wantWhole(map[string]bool{ip.String(): true})
			})
		})
	}
}

// reapWhile runs the reaper, which must exit with 0, and does something between its last read of a
// block and its write.
func (s *fixture) reapWhile(policy string, do func()) *reap.Report {
	s.Helper()
	return s.reapWhileHeld(policy, "update ipamblocks", do)
}

// reapWhileHeld is reapWhile for another write. In etcd, there is only one.
func (s *fixture) reapWhileHeld(policy, write string, do func()) *reap.Report {
	s.Helper()
	type end struct {
		report *reap.Report
		err    error
	}
	gate, ended := proxy.NewGate(), make(chan end, 1)
	if s.Etcd != nil {
		hold := s.intercepted(func(t reap.Transaction) error {
			gate.Hook(t.Context, proxy.Request{})
			return t.Forward()
		})
		go func() {
			report, err := hold.Run(s.Context(), policy)
			ended <- end{report, err}
		}()
	} else {
		s.watched().Before(proxy.Nth(1, proxy.On(write)), gate.Hook)
		process := s.start(policy)
		go func() {
			result, err := process.Wait()
			if err == nil && result.ExitCode != reap.ExitDone {
				err = fmt.Errorf("exit code %d\n%s", result.ExitCode, result.Stderr)
			}
			ended <- end{result.Report, err}
		}()
	}
	select {
	case <-gate.Arrived():
		do()
		gate.Open()
	case e := <-ended:
		s.Fatalf("there was no %s: %v", write, e.err)
	}
	e := <-ended
	s.must(e.err)
	return e.report
}

// liveAt makes the plugin give the address to a sandbox whose pod runs and shows it.
func (s *fixture) liveAt(pod, containerID string, ip netip.Addr) {
	s.Helper()
	sandbox := calico.NewSandbox(shop, pod, node)
	sandbox.ContainerID, sandbox.IP = containerID, ip
	ips, err := s.Add(s.Context(), sandbox)
	s.must(err)
	s.must(s.CreatePod(s.Context(), sandbox, ips))
}

// dies removes the pod of a sandbox, and what tells Calico about it.
func (s *fixture) dies(sandbox calico.Sandbox) {
	s.Helper()
	s.must(s.Cluster.DeletePod(s.Context(), sandbox.Namespace, sandbox.Pod))
	if s.Etcd == nil {
		return
	}
	escape := strings.NewReplacer("-", "--")
	_, err := s.Calicoctl(s.Context(), "", "delete", "workloadendpoint", "--namespace="+sandbox.Namespace,
		escape.Replace(sandbox.Node)+"-k8s-"+escape.Replace(sandbox.Pod)+"-eth0")
	s.must(err)
}

// held returns the addresses that blocks hold.
func (s *fixture) held() map[string]bool {
	s.Helper()
	held, err := s.Allocated(s.Context())
	s.must(err)
	return held
}

// wantOutcomes compares the outcomes of the addresses in the report.
func (s *fixture) wantOutcomes(report *reap.Report, want map[netip.Addr]string) {
	s.Helper()
	got := map[netip.Addr]string{}
	for _, e := range report.Entries {
		if ip, err := netip.ParseAddr(e.IP); err == nil {
			got[ip] = e.Outcome
		}
	}
	if diff := cmp.Diff(want, got, equalAddrs); diff != "" {
		s.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

// wantWhole compares the addresses that blocks hold, and fails the test unless everything else is
// as Calico wants it.
func (s *fixture) wantWhole(want map[string]bool) {
	s.Helper()
	if err := s.Whole(s.Context(), want); err != nil {
		s.Error(err)
	}
}

var equalAddrs = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

// A block has the counts of a block's writes.
type block struct {
	Sequence  uint64            `json:"sequenceNumber"`
	Sequences map[string]uint64 `json:"sequenceNumberForAllocation"`
}

// wantCounts fails the test unless each handle counts what blocks hold for it, and there are no
// others.
func (s *fixture) wantCounts() {
	s.Helper()
	if err := s.Counted(s.Context()); err != nil {
		s.Error(err)
	}
}
