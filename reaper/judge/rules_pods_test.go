package judge_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// releaseNow takes the waits out of the policy that a policy may take out.
func releaseNow(p *policy.Policy) {
	p.GracePeriod, p.MinAge = &policy.Duration{}, &policy.Duration{}
}

// releaseAll sets every choice of the policy to release, without a grace period.
func releaseAll(p *policy.Policy) {
	releaseNow(p)
	p.Pods.Finished, p.Pods.Superseded, p.Pods.Unnamed = policy.Release, policy.Release, policy.Release
	p.Nodes.Unreachable = policy.Release
}

// Promise 1, 2. The pod that an allocation names, and pods that show its address.
func TestDecisionOnAllocationOfPod(t *testing.T) {
	old := entry(func(a *ipam.Allocation) { a.Owner.UID = "old" })
	unreadable := entry(func(a *ipam.Allocation) { a.Unreadable = "no JSON" })
	noToken := entry(func(a *ipam.Allocation) { a.Token = "" })
	address := func(text string) change {
		return entry(func(a *ipam.Allocation) { a.IP = netip.MustParseAddr(text) })
	}
	created := func(at time.Time) change { return entry(func(a *ipam.Allocation) { a.Created = at }) }
	interrupted := entry(func(a *ipam.Allocation) { a.Interrupted = true })
	deleting := entry(func(a *ipam.Allocation) {
		a.Deleting = "it is being deleted, and waits for the finalizers example.com/hold"
	})
	unknown := entry(func(a *ipam.Allocation) { a.UnknownField = "spec.allocations[1].claim" })
	claimed := entry(func(a *ipam.Allocation) { a.Protected = "IPAMClaim default/vm exists" })
	its := pods(showing(web, ip1))
	wild := policy.Match{Pods: []string{"w*"}}
	replaced := decision{judge.Suspected, judge.PodReplaced, ""}
	orphan := decision{judge.Orphaned, judge.PodAbsent, ""}
	verdicts(t, all(),
		of("its pod shows the address", present, its),
		of("its pod exists and shows nothing yet", present, pods(census.Pod{Ref: web, AddressUnknown: true})),
		of("its pod exists and shows an address of another store", present, pods(showing(web, netip.MustParseAddr("192.0.2.1")))),
		of("another pod shows the address", shown, pods(showing(other, ip1))),
		of("another pod shows the address on another interface", shown, pods(census.Pod{Ref: other, Addresses: []netip.Addr{ip1}, Interfaces: on("eth7", ip1)})),
		of("its pod exists, and another one shows the address", shown, pods(showing(web), showing(other, ip1))),
		of("its pod does not exist", absent, pods(showing(other, ip2))),
		of("a pod of that name exists in another namespace", absent, pods(census.Pod{Ref: ipam.PodRef{Namespace: "prod", Name: "web"}})),
		of("a pod of that name exists, with another UID", replaced, old, pods(census.Pod{Ref: web, UID: "new"})),
		of("a pod with another UID shows the address", present, old, pods(census.Pod{Ref: web, UID: "new", Addresses: []netip.Addr{ip1}})),
		of("the store does not know the UID", present, pods(census.Pod{Ref: web, UID: "new"})),
		of("the pod's UID is not known", present, old, pods(census.Pod{Ref: web})),
		of("out of the policy's namespaces", held(judge.OutOfScope, "namespaces.exclude has default"), excludes("default")),
		of("out of the policy's namespaces and in use", present, excludes("default"), its),
		of("a rule holds it", held(judge.RuleHold, "held by rules[0]: pods w*"), holds(wild)),
		of("a rule holds another pod's", absent, holds(wild), owner(ipam.Owner{Pod: other})),
		of("the store could not notice that it changed hands", held(judge.NoToken, ""), noToken),
		of("without a token and in use", present, noToken, its),
		of("it could not be understood, although a pod shows its address", held(judge.Unreadable, "no JSON"), unreadable, its),
		of("it has no address", held(judge.Unreadable, "the allocation has no address"), entry(func(a *ipam.Allocation) { a.IP = netip.Addr{} })),
		of("its address is an IPv4 address in the clothes of IPv6", shown, address("::ffff:10.0.0.1"), pods(showing(other, ip1))),
		of("its address has a zone", shown, address("fd00::1%eth0"), pods(showing(other, netip.MustParseAddr("fd00::1")))),

		of("one second too young", held(judge.TooYoung, "too young to tell until 2026-03-01T12:00:01Z"), created(noon.Add(-5*time.Minute+time.Second))),
		of("old enough", absent, created(noon.Add(-5*time.Minute))),
		of("created in the future", absent, created(noon.Add(time.Hour))),
		of("young, but an earlier run had begun to release it", orphan, created(noon), interrupted),

		// An interrupted release proves nothing about the owner now.
		of("interrupted, and its pod is back", present, interrupted, pods(census.Pod{Ref: web})),
		of("interrupted, and another pod has the address", shown, interrupted, pods(showing(other, ip1))),
		of("interrupted, and a rule holds it now", held(judge.RuleHold, "held by rules[0]: pods w*"), interrupted, holds(wild)),

		// A field that the backend does not know may say that the address is in use.
		of("it is being deleted", held(judge.BeingDeleted, "it is being deleted, and waits for the finalizers example.com/hold"), deleting, terms(releaseNow)),
		of("it has an unknown field", held(judge.UnknownField, "it has an unknown field: spec.allocations[1].claim"), unknown, terms(releaseNow)),
		of("it has an unknown field, and is in use", present, unknown, its),

		// A release that had begun before the address was protected is finished.
		of("claimed", held(judge.Protected, "IPAMClaim default/vm exists"), claimed),
		of("claimed in the midst of a release", orphan, claimed, interrupted),

		// The guest of a virtual machine keeps its address in a live migration.
		of("a guest reports the address", decision{judge.InUse, judge.AddressInUse, "reported by virtual machine default/vm"},
			guests(census.VirtualMachine{Namespace: "default", Name: "vm", Addresses: []netip.Addr{ip1}})),
	)
}

// Promise 1, 2.
func TestFinishedPodHoldsUnlessThePolicySaysRelease(t *testing.T) {
	sibling := webAllocation()
	sibling.Key, sibling.IP, sibling.Owner.Sandbox = "2", ip2, "s2"
	ended := func(p census.Pod) change { return all(pods(finished(p)), beside(sibling)) }
	hold, release := held(judge.PodFinished, ""), decision{judge.Suspected, judge.PodFinished, ""}
	replaced := decision{judge.Suspected, judge.PodReplaced, ""}
	superseded := decision{judge.Suspected, judge.SandboxReplaced, "the pod has 10.0.0.2"}
	old := entry(func(a *ipam.Allocation) { a.Owner.UID = "old" })
	dispositions(t, func(p *policy.Policy, d policy.Disposition) { p.Pods.Finished = d },
		either("its own pod, which shows the address", hold, release, ended(showing(web, ip1))),
		either("its own pod, which shows nothing", hold, release, ended(census.Pod{Ref: web})),
		either("its own pod, which shows the address and another of the pool", hold, release, ended(showing(web, ip1, ip2))),
		either("its own pod, which shows another address of the pool", superseded, superseded, ended(showing(web, ip2)),
			entry(func(a *ipam.Allocation) { a.Owner.Interface, a.Adoption = "", ipam.NeverAdopted })),
		either("another pod, which shows the address", absent, absent, ended(showing(other, ip1))),
		either("another pod, which shows the address of an allocation without a name", shown, held(judge.OwnerUnknown, "it names only a sandbox"),
			ended(showing(other, ip1)), owner(ipam.Owner{Sandbox: "alone"})),
		either("a pod of that name with another UID, which shows nothing", replaced, replaced, ended(census.Pod{Ref: web, UID: "new"}), old),
		either("a pod of that name with another UID, which shows the address", hold, release,
			ended(census.Pod{Ref: web, UID: "new", Addresses: []netip.Addr{ip1}}), old),
	)
}

// unnamed sets the disposition for allocations that name no pod for certain.
func unnamed(p *policy.Policy, d policy.Disposition) { p.Pods.Unnamed = d }

// Promise 1, 2. What names only a sandbox may be of any pod, and half a name is none.
func TestAllocationThatNamesOnlyASandbox(t *testing.T) {
	hold, none := held(judge.OwnerUnknown, "it names only a sandbox"), held(judge.OwnerUnknown, "it names no pod")
	s1 := owner(ipam.Owner{Sandbox: "s1"})
	hasSandbox := decision{judge.InUse, judge.PodPresent, "a pod shows its sandbox"}
	dispositions(t, unnamed,
		either("no pod shows the sandbox or the address", hold, decision{judge.Suspected, judge.SandboxAbsent, ""}, s1, pods(showing(other, ip2))),
		either("a pod shows the sandbox", hasSandbox, hasSandbox, s1, pods(census.Pod{Ref: other, Sandbox: "s1"})),
		either("a pod shows the address", shown, shown, s1, pods(census.Pod{Ref: other, Addresses: []netip.Addr{ip1}, Sandbox: "s2"})),
		either("a pod does not show its addresses yet", hold, held(judge.OwnerUnknown, "it names only a sandbox, and not every pod shows its addresses"),
			s1, pods(showing(web, ip2), census.Pod{Ref: other, AddressUnknown: true})),
		either("it names no owner at all", none, none, owner(ipam.Owner{})),
		either("it names a pod without a namespace", none, none, owner(ipam.Owner{Pod: ipam.PodRef{Name: "a/b/c"}, Sandbox: "s1"})),
		either("it names a namespace without a pod", none, none, owner(ipam.Owner{Pod: ipam.PodRef{Namespace: "default"}, Sandbox: "s1"})),
	)
	// It falls under every rule that may be about its pod.
	verdicts(t, all(s1, terms(func(p *policy.Policy) { p.Pods.Unnamed = policy.Release })),
		of("some namespaces are excluded", held(judge.OutOfScope, "namespaces.exclude has prod"), excludes("prod")),
		of("a rule holds some namespaces", held(judge.RuleHold, "held by rules[0]: namespaces prod"), holds(policy.Match{Namespaces: []string{"prod"}})),
	)
}

// Promise 1, 2. An address that is not for a pod is held with its purpose, and pods do not matter.
func TestForeignAllocationIsHeldWithItsPurpose(t *testing.T) {
	tunnel := held(judge.NotPodOwned, "a tunnel")
	verdicts(t, all(terms(releaseAll), entry(func(a *ipam.Allocation) { a.Foreign = "a tunnel" })),
		of("its pod exists", tunnel, pods(showing(web, ip1))),
		of("it names no owner", tunnel, owner(ipam.Owner{})),
		of("a run had begun to release it", tunnel, entry(func(a *ipam.Allocation) { a.Interrupted = true })),
		of("it cannot be understood either", held(judge.Unreadable, "no JSON"), entry(func(a *ipam.Allocation) { a.Unreadable = "no JSON" })),
	)
}

// Promise 1. The pod other shows 10.0.0.1, which web's allocation holds too. It depends on the
// network of other's own allocation whether the two are the same address, and only an
// allocation that is certain proves anything.
func TestAddressShownByPodThatHoldsItElsewhere(t *testing.T) {
	elsewhere := func(network, where string, claim func(*ipam.Allocation)) change {
		return func(s *situation) {
			a := webAllocation()
			a.Owner.Pod = other
			if claim != nil {
				claim(&a)
			}
			there := poolOf(a)
			s.pools[0].Network, there.Network, there.Name = network, where, "there"
			s.pools = append(s.pools, there)
		}
	}
	verdicts(t, pods(showing(other, ip1)),
		of("in another network", absent, elsewhere("blue", "red", nil)),
		of("in an unnamed network", absent, elsewhere("blue", "-", nil)),
		of("in another pool of the same network", shown, elsewhere("blue", "blue", nil)),
		of("in a network without a name", shown, elsewhere("blue", "", nil)),
		of("while this network has no name", shown, elsewhere("", "red", nil)),
		of("in networks without names", shown, elsewhere("", "", nil)),
		of("by an allocation that cannot be read", shown, elsewhere("blue", "red", func(a *ipam.Allocation) { a.Unreadable = "half of it is missing" })),
		of("at another address", shown, elsewhere("blue", "red", func(a *ipam.Allocation) { a.IP = ip2 })),
		of("for another pod", shown, elsewhere("blue", "red", func(a *ipam.Allocation) { a.Owner.Pod.Namespace = "prod" })),
		of("by an allocation that is not a pod's", shown, elsewhere("blue", "red", func(a *ipam.Allocation) { a.Foreign = "a tunnel" })),
		of("by an allocation that holds no address any more", shown, elsewhere("blue", "red", func(a *ipam.Allocation) { a.EmptyHandle = true })),
		of("a third pod shows it too", decision{judge.InUse, judge.AddressInUse, "shown by pod default/third"}, elsewhere("blue", "red", nil),
			pods(showing(ipam.PodRef{Namespace: "default", Name: "third"}, ip1))),
		of("the own pod shows it too, in whatever network", present, elsewhere("blue", "red", func(a *ipam.Allocation) { a.Owner.Pod = web }),
			pods(showing(web, ip1)), func(s *situation) { s.pods = s.pods[1:] }),
	)
	claim := webAllocation()
	claim.Owner.Pod = other
	here, there := poolOf(webAllocation()), poolOf(claim)
	here.Network, there.Network = "blue", "red"
	inv := inventory(t, fixedStore{here}, fixedStore{there})
	decisions := judge.Judge(noon, policy.Default(), inv, censusOf(showing(other, ip1)), ledger.Ledger{})
	equal(t, "verdict where another backend says it", decisionOf(decisions[0]), shown)
}

// crowded is a pod that shows more addresses than ip-reaper reads.
func crowded(namespace, name string) census.Pod {
	return census.Pod{Ref: ipam.PodRef{Namespace: namespace, Name: name}, AddressUnknown: true, TooMuch: true}
}

// Promise 1, 2. What was not read may be the address of anything that names a pod of the same
// namespace, or no pod. A tenant cannot keep what names a pod of another namespace.
func TestWhatShowsTooMuchMayHaveTheAddress(t *testing.T) {
	by := func(name string) decision {
		return decision{judge.InUse, judge.AddressInUse, name + " shows more addresses than ip-reaper reads"}
	}
	noName := entry(func(a *ipam.Allocation) { a.Owner.Pod = ipam.PodRef{} })
	machine := func(namespace string) change {
		return guests(census.VirtualMachine{Namespace: namespace, Name: "vm", TooMuch: true})
	}
	gone := decision{judge.Suspected, judge.SandboxAbsent, ""}
	verdicts(t, terms(func(p *policy.Policy) { p.Pods.Unnamed = policy.Release }),
		of("a pod of the namespace", by("pod default/a"), pods(crowded("default", "b"), crowded("default", "a"))),
		of("a pod of another namespace", absent, pods(crowded("elsewhere", "a"))),
		of("a pod of the namespace that has ended", absent, pods(finished(crowded("default", "a")))),
		of("the pod itself", present, pods(crowded("default", "web"))),
		of("a machine of the namespace", by("virtual machine default/vm"), machine("default")),
		of("a machine of another namespace", absent, machine("elsewhere")),
		of("any machine, and no pod is named", by("virtual machine elsewhere/vm"), noName, machine("elsewhere")),
		of("any pod, and no pod is named", held(judge.OwnerUnknown, "it names only a sandbox, and not every pod shows its addresses"), noName, pods(crowded("elsewhere", "a"))),
		of("any pod that has ended, where these hold", by("pod elsewhere/a"), noName, pods(finished(crowded("elsewhere", "a")))),
		of("any pod that has ended, where these do not hold", gone, noName, pods(finished(crowded("elsewhere", "a"))),
			terms(func(p *policy.Policy) { p.Pods.Finished = policy.Release })),
		of("it holds no address", decision{judge.Suspected, judge.EmptyHandle, ""},
			entry(func(a *ipam.Allocation) { a.EmptyHandle, a.IP = true, netip.Addr{} }), pods(crowded("default", "a"))),
	)
}

// A report names the first few, and counts the others. Finished pods count as far as the policy
// holds their addresses.
func TestWhatShowsTooMuchIsAWarning(t *testing.T) {
	s := given(pods(finished(crowded("default", "ended"))), guests(census.VirtualMachine{Namespace: "vms", Name: "vm", TooMuch: true}))
	for i := range 6 {
		s.pods = append(s.pods, crowded("default", fmt.Sprintf("pod-%d", 5-i)))
	}
	for d, left := range map[policy.Disposition]string{policy.Hold: "pod default/ended, pod default/pod-0, pod default/pod-1, pod default/pod-2, pod default/pod-3 and 3 more",
		policy.Release: "pod default/pod-0, pod default/pod-1, pod default/pod-2, pod default/pod-3, pod default/pod-4 and 2 more"} {
		s.policy = func(p *policy.Policy) { p.Pods.Unnamed, p.Pods.Finished = policy.Release, d }
		warnings := strings.Join(judge.ExcessWarnings(s.terms(), s.census(t)), "\n")
		if want := "allocations that name no pod, or a pod of the same namespace, are kept because of too many addresses on " + left; !strings.Contains(warnings, want) {
			t.Errorf("warnings %s\nwant %s", warnings, want)
		}
	}
}

// Promise 1, 2. After a live migration, a guest keeps an address of a pod that is gone. The pod's
// name says which machine it was of; the API server cuts off long names.
func TestGuestThatDoesNotReportItsAddressesMayHaveThoseOfItsPods(t *testing.T) {
	long := strings.Repeat("long-", 12)
	mayHave := func(machine string) decision {
		return decision{
			judge.InUse, judge.AddressInUse,
			"virtual machine default/" + machine + " does not report all addresses of its guest: run the guest agent in it, or stop it",
		}
	}
	launcher := ipam.PodRef{Namespace: "default", Name: "virt-launcher-db-x7k2p"}
	named := func(name string) change {
		return entry(func(a *ipam.Allocation) { a.Owner.Pod.Name, a.Created = name, noon.Add(-2*time.Hour) })
	}
	its := named(launcher.Name)
	machine := func(m census.VirtualMachine) change {
		if m.Namespace == "" {
			m.Namespace = "default"
		}
		return guests(census.VirtualMachine{Namespace: "default", Name: "another"}, m)
	}
	made := func(after time.Duration) change {
		return machine(census.VirtualMachine{Name: "db", Created: noon.Add(after - 2*time.Hour)})
	}
	verdicts(t, terms(func(p *policy.Policy) { p.Pods.Finished = policy.Release }),
		of("it is of the machine", mayHave("db"), its, made(0)),
		of("it is of a machine with a long name", mayHave(long+"vm"), named("virt-launcher-"+long[:58-14]+"x7k2p"), machine(census.VirtualMachine{Name: long + "vm"})),
		of("it is of a machine of another namespace", absent, its, machine(census.VirtualMachine{Name: "db", Namespace: "elsewhere"})),
		of("the machine reports all", absent, its, machine(census.VirtualMachine{Name: "db", Reported: true})),
		of("the machine is younger", absent, its, made(61*time.Second)),
		of("the machine is younger, or a clock is wrong", mayHave("db"), its, made(time.Minute)),
		of("the machine is younger than what has no time", mayHave("db"), its, made(time.Hour), entry(func(a *ipam.Allocation) { a.Created = time.Time{} })),
		of("the pod has ended", mayHave("db"), its, made(0), pods(census.Pod{Ref: launcher, Finished: true})),
		of("the pod exists", present, its, made(0), pods(census.Pod{Ref: launcher})),
	)
}

// Promise 2. A StatefulSet keeps the addresses of the pods that it brings back, unless the policy
// ignores that. It does not keep what no pod adopts.
func TestStatefulSetKeepsTheAddressesOfItsPods(t *testing.T) {
	db := census.StatefulSet{Namespace: "default", Name: "db", Replicas: 3}
	for _, tt := range []struct {
		name string
		pod  string
		set  census.StatefulSet
		want bool
	}{
		{"an ordinal that it wants", "db-2", db, true},
		{"one too many", "db-3", db, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := map[policy.StatefulSetProtection]decision{policy.Ignore: absent, "": absent}
			if tt.want {
				want[""] = stays // an unknown value in the policy keeps
			}
			for value, want := range want {
				s := given(entry(func(a *ipam.Allocation) { a.Owner.Pod.Name = tt.pod }), sets(tt.set),
					terms(func(p *policy.Policy) { p.Protection.StatefulSets = value }))
				equal(t, "verdict under "+string(value), decisionOf(s.judge(t, noon)[0]), want)
			}
			s := given(entry(func(a *ipam.Allocation) { a.Owner.Pod.Name, a.Adoption = tt.pod, ipam.NeverAdopted }), sets(tt.set))
			d := s.judge(t, noon)[0]
			equal(t, "verdict on what no pod adopts", decisionOf(d), absent)
			why := judge.Evidence{Source: "StatefulSet default/db", Says: "it wants the pod back, which cannot adopt the allocation"}
			equal(t, "says why", slices.Contains(d.Evidence, why), tt.want)
		})
	}
}

// Promise 2. A StatefulSet does not keep what only a pod on a node that is gone could adopt.
func TestStatefulSetDoesNotKeepWhatOnlyAPodOnALostNodeAdopts(t *testing.T) {
	of0 := func(on, also string, adoption ipam.Adoption) change {
		return entry(func(a *ipam.Allocation) {
			a.Owner.Pod.Name, a.Owner.Node, a.Adoption, a.AlsoOn = "db-0", on, adoption, also
		})
	}
	common := func(s *situation) {
		sets(census.StatefulSet{Namespace: "default", Name: "db", Replicas: 1})(s)
		nodes(ready("n1"))(s)
	}
	verdicts(t, common,
		of("its node is gone", absent, of0("n9", "", ipam.AdoptedOnNode)),
		of("its node is gone, and any pod may adopt it", stays, of0("n9", "", ipam.Adoptable)),
		of("its node is gone, and another one has its slice", stays, of0("n9", "n1", ipam.AdoptedOnNode)),
		of("its node is gone, unless that is another name of one", stays, of0("n1.example.com", "", ipam.AdoptedOnNode)),
		of("its node is there", stays, of0("n1", "", ipam.AdoptedOnNode)),
		of("its node is fenced", stays, of0("n1", "", ipam.AdoptedOnNode), nodes(census.Node{Name: "n1", OutOfService: true})),
		of("its node is not known", stays, of0("", "", ipam.AdoptedOnNode)),
		of("no node is known", stays, of0("n9", "", ipam.AdoptedOnNode), nodes()),
		of("the store has its own names of nodes", stays, of0("n9", "", ipam.AdoptedOnNode), func(s *situation) {
			elsewhere := s.pools[0].Allocations[0]
			elsewhere.Key, elsewhere.IP, elsewhere.Token, elsewhere.Owner.Pod = "2", ip2, "t2", other
			s.pools[0].Allocations = append(s.pools[0].Allocations, elsewhere)
			pod := showing(other, ip2)
			pod.Node = "n1"
			s.pods = append(s.pods, pod)
		}),
	)
}

// emptyHandle returns what is left of the allocation of sandbox s1.
func emptyHandle() ipam.Allocation {
	return ipam.Allocation{Key: "net.s1", Token: "t1", EmptyHandle: true, Owner: ipam.Owner{Sandbox: "s1"}}
}

// Promise 1, 2. An empty handle may also be the beginning of an allocation.
func TestDecisionOnEmptyHandle(t *testing.T) {
	left := decision{judge.Suspected, judge.EmptyHandle, ""}
	has := decision{judge.InUse, judge.PodPresent, "a pod shows its sandbox"}
	noOwner := held(judge.OwnerUnknown, "it names neither a pod nor a sandbox")
	ofWeb, ofBoth := owner(ipam.Owner{Pod: web}), owner(ipam.Owner{Pod: web, Sandbox: "s1"})
	itsPod := policy.Match{Pods: []string{"web"}}
	verdicts(t, entry(func(a *ipam.Allocation) { *a = emptyHandle() }),
		of("no pod shows its sandbox", left, pods(census.Pod{Ref: web, Sandbox: "s2"})),
		of("a pod shows its sandbox", has, pods(census.Pod{Ref: other, Sandbox: "s1"})),
		of("a finished pod shows its sandbox", has, pods(census.Pod{Ref: other, Sandbox: "s1", Finished: true}), terms(releaseAll)),
		of("a pod does not show its addresses", left, pods(census.Pod{Ref: other, AddressUnknown: true})),
		of("its pod exists", present, ofWeb, pods(census.Pod{Ref: web})),
		of("its pod exists with another sandbox", present, ofBoth, pods(census.Pod{Ref: web, Sandbox: "s2"})),
		of("its pod does not exist", left, ofWeb),
		of("it names no owner", noOwner, owner(ipam.Owner{})),
		of("it names a namespace, and a sandbox", noOwner, owner(ipam.Owner{Pod: ipam.PodRef{Namespace: "default"}, Sandbox: "s1"})),
		of("the store could not notice that it is used again", held(judge.NoToken, ""), entry(func(a *ipam.Allocation) { a.Token = "" })),
		of("too young", held(judge.TooYoung, "too young to tell until 2026-03-01T12:04:00Z"), entry(func(a *ipam.Allocation) { a.Created = noon.Add(-time.Minute) })),
		of("a rule holds it", held(judge.RuleHold, "held by rules[0]: pods web"), ofWeb, holds(itsPod)),
		of("a rule holds another's", left, holds(itsPod)),
		of("a rule holds its backend", held(judge.RuleHold, "held by rules[0]: backends *"), holds(policy.Match{Backends: []string{"*"}})),
		of("its backend gives it an address by mistake", left, entry(func(a *ipam.Allocation) { a.IP = ip1 }), pods(showing(other, ip1))),
	)
}

// Promise 1. An ADD writes the handle first. As long as the ADD takes, its handle is
// empty, no matter what age the store names.
func TestEmptyHandleWaitsOutAnAddInFlight(t *testing.T) {
	for _, tt := range []struct {
		created             time.Time
		grace, minAge, want time.Duration
	}{
		{time.Time{}, 0, 0, 4 * time.Minute},
		{noon.Add(-24 * time.Hour), 0, 0, 4 * time.Minute},
		{time.Time{}, time.Minute, 6 * time.Minute, 6 * time.Minute},
		{time.Time{}, 9 * time.Minute, 6 * time.Minute, 9 * time.Minute},
	} {
		s := given(entry(func(a *ipam.Allocation) { *a = emptyHandle(); a.Created = tt.created }), waits(tt.grace, tt.minAge))
		s.ripens(t, tt.want)
		s.ledger = s.seen(t, noon)
		s.pools[0].Allocations[0].Token = "t2"
		equal(t, "verdict after it was written again", s.judge(t, noon.Add(time.Hour))[0].Verdict, judge.Suspected)
	}
}
