package judge_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// eth0 returns the attachment of a sandbox that has these addresses.
func eth0(sandbox string, ips ...netip.Addr) ipam.Attachment {
	return ipam.Attachment{Sandbox: sandbox, Interface: "eth0", IPs: ips, File: "/cache/" + sandbox}
}

// vague returns the attachment of a sandbox that cannot be decoded.
func vague(sandbox string) ipam.Attachment {
	return ipam.Attachment{Sandbox: sandbox, Interface: "eth0", File: "/cache/" + sandbox, Unreadable: "no JSON"}
}

// leaseOf returns a lease of a sandbox that the runtime has.
func leaseOf(sandbox, name string, ip netip.Addr) ipam.Allocation {
	a := lease()
	a.Key, a.IP, a.Token = ip.String(), ip, "t-"+sandbox+name
	a.Owner = ipam.Owner{Pod: ipam.PodRef{Namespace: "node", Name: sandbox}, Sandbox: sandbox, Interface: name}
	return a
}

// Promise 1. What the sandboxes of the node have by libcni's cache keeps every allocation of that address,
// unless the sandbox has the address by another one.
func TestAddressThatASandboxHas(t *testing.T) {
	gone := decision{judge.Suspected, judge.SandboxAbsent, ""}
	of2 := decision{judge.InUse, judge.AddressInUse, "libcni's cache has it for pod node/s2"}
	has := func(as ...ipam.Attachment) change { return func(s *situation) { s.attached = as } }
	elsewhere := func(as ...ipam.Allocation) change {
		return func(s *situation) { s.pools = append(s.pools, ipam.Pool{Name: "another", Allocations: as}) }
	}
	net1 := func(a ipam.Attachment) ipam.Attachment {
		a.Interface = "net1"
		return a
	}
	earlier := leaseOf("s2", "eth0", ip1)
	earlier.Owner.Sandbox = "s0"
	prefix := entry(func(a *ipam.Allocation) { a.Owner.Sandbox = "abcdef12" })
	verdicts(t, leased,
		of("another sandbox has the address", of2, has(eth0("s2", ip2, ip1))),
		of("another sandbox has another address", gone, has(eth0("s2", ip2))),
		of("another sandbox has none", gone, has(eth0("s2"))),
		of("a sandbox has it that the runtime does not have", gone, has(eth0("s3", ip1))),
		of("an ADD broke off", of2, blank, has(eth0("s2", ip1))),
		of("by the beginning of an ID, of which there is none", of2, prefix, has(eth0("s2", ip1))),
		of("the lease names the pod of the sandbox that has it", of2, has(eth0("s2", ip1)), entry(func(a *ipam.Allocation) { a.Owner.Pod = leaseOf("s2", "", ip1).Owner.Pod })),

		of("it has the address in another folder", gone, has(eth0("s2", ip1)), elsewhere(leaseOf("s2", "eth0", ip1))),
		of("it has another address in another folder", of2, has(eth0("s2", ip1)), elsewhere(leaseOf("s2", "eth0", ip2))),
		of("it has the address in another folder, on another interface", of2, has(eth0("s2", ip1)), elsewhere(leaseOf("s2", "net1", ip1))),
		of("it has the address on two interfaces, and one lease", of2, has(net1(eth0("s2", ip1)), eth0("s2", ip1)), elsewhere(leaseOf("s2", "eth0", ip1))),
		of("it has the address on two interfaces, and two leases", gone, has(net1(eth0("s2", ip1)), eth0("s2", ip1)),
			elsewhere(leaseOf("s2", "eth0", ip1), leaseOf("s2", "net1", ip1))),
		of("its lease in another folder names no interface", of2, has(eth0("s2", ip1)), elsewhere(leaseOf("s2", "", ip1))),
		of("an earlier sandbox of its pod has it in another folder", of2, has(eth0("s2", ip1)), elsewhere(earlier)),
		of("a third sandbox has it in another folder", of2, sandboxes("s2", "s3"), has(eth0("s2", ip1)), elsewhere(leaseOf("s3", "eth0", ip1))),
	)
}

// Promise 2. An entry of a sandbox that cannot be decoded may have any address of the folders in which the
// sandbox has none for that interface.
func TestAddressThatASandboxMayHave(t *testing.T) {
	gone := decision{judge.Suspected, judge.SandboxAbsent, ""}
	note := "sandbox s2 may have the address: its entry /cache/s2 cannot be decoded: no JSON"
	may := held(judge.Protected, note)
	beside := func(as ...ipam.Allocation) change {
		return func(s *situation) { s.pools[0].Allocations = append(s.pools[0].Allocations, as...) }
	}
	elsewhere := func(s *situation) {
		s.pools = append(s.pools, ipam.Pool{Name: "another", Allocations: []ipam.Allocation{leaseOf("s2", "eth0", ip2)}})
	}
	verdicts(t, all(leased, func(s *situation) { s.attached = []ipam.Attachment{vague("s2")} }),
		of("it has no lease", may),
		of("an ADD broke off", may, blank),
		of("it has one in this folder", gone, beside(leaseOf("s2", "eth0", ip2))),
		of("it has one in this folder, for another interface", may, beside(leaseOf("s2", "net1", ip2))),
		of("it has one in this folder, of the other family", may, beside(leaseOf("s2", "eth0", netip.MustParseAddr("fd00::2")))),
		of("it has one in another folder", may, elsewhere),
		of("a sandbox that the runtime does not have", gone, sandboxes("s3")),
	)
}

// Promise 1. What may run since before a boot, and that cannot be checked, keeps a lease until a run
// has seen this very lease in an earlier boot.
func TestBootEndsWhatCannotBeChecked(t *testing.T) {
	gone := decision{judge.Suspected, judge.SandboxAbsent, ""}
	kept := held(judge.Protected, "unseen")
	for _, tt := range []struct {
		name       string
		then, now  string // the boots
		meanwhile  change
		want       decision
		wantSecond decision // another run later, in the second boot
	}{
		{"the same boot", "b1", "b1", all(), kept, kept},
		{"another boot", "b1", "b2", all(), gone, gone},
		{"the boot is not known now", "b1", "", all(), kept, kept},
		{"the boot was not known then", "", "b2", all(), kept, kept},
		{"the boot was not known then, nor later", "", "", all(), kept, kept},
		{"the lease was written again", "b1", "b2", entry(func(a *ipam.Allocation) { a.Token = "t2" }), kept, kept},
		{"something is seen", "b1", "b2", entry(func(a *ipam.Allocation) { a.UntilBoot = false }), kept, kept},
		{"the ledger was lost", "b1", "b2", func(s *situation) { s.ledger = ledger.Ledger{} }, kept, kept},
		{"a restore put it back", "b1", "b2", func(s *situation) {
			a := s.pools[0].Allocations[0]
			s.pools[0].Allocations[0].Token = "t2"
			a.Backend, a.Pool = "fixed", "pool"
			s.ledger = s.ledger.WithRestored(func(yield func(*ipam.Allocation, ledger.Place) bool) { yield(&a, ledger.Place{Boot: "b1"}) }, noon.Add(-48*time.Hour))
		}, kept, kept},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := given(leased, entry(func(a *ipam.Allocation) { a.Protected, a.UntilBoot = "unseen", true }))
			s.boot = tt.then
			s.ledger = s.seen(t, noon)
			s.boot = tt.now
			tt.meanwhile(&s)
			equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), tt.want)
			s.ledger = s.seen(t, noon)
			equal(t, "verdict of the next run", decisionOf(s.judge(t, noon)[0]), tt.wantSecond)
		})
	}
}

// Promise 1. A live sandbox is seen in a boot, too; and the first boot counts, so that a machine that is
// set back to that one keeps the lease.
func TestFirstBootCounts(t *testing.T) {
	s := given(leased, entry(func(a *ipam.Allocation) { a.Protected, a.UntilBoot = "unseen", true }))
	verdict := func(boot string, want judge.Reason, sandboxes ...string) {
		t.Helper()
		s.boot, s.sandboxes = boot, sandboxes
		equal(t, "reason in boot "+boot, s.judge(t, noon)[0].Reason, want)
		s.ledger = s.seen(t, noon)
	}
	verdict("b1", judge.SandboxPresent, "s1", "s2")
	verdict("b2", judge.SandboxAbsent, "s2")
	verdict("b1", judge.Protected, "s2")
}

// Promise 1, 7. A sandbox that is not ready keeps its addresses; how many those are is a warning.
func TestSandboxThatIsNotReadyKeepsAndIsCounted(t *testing.T) {
	s := given(leased, sandboxes("s1", "s10", "s2"), func(s *situation) { s.stopped = []string{"s1"} })
	equal(t, "warnings of one that is", judge.NotReadyWarnings(s.judge(t, noon)), nil) // a store may cut off the ID
	s.stopped = []string{"s1", "s10"}
	decisions := s.judge(t, noon)
	equal(t, "verdict", decisionOf(decisions[0]), decision{judge.InUse, judge.SandboxPresent, "its sandbox is not ready"})
	equal(t, "warnings", judge.NotReadyWarnings(decisions), []string{"1 allocation kept for sandboxes that are not ready, which crictl pods --state NotReady lists. " +
		"If the kubelet does not end them, crictl stopp ID stops one or says why that fails, and crictl rmp ID removes it: a run then releases what its plugin left"})
}
