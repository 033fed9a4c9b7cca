package judge_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// A sentence is a state, the reason and the note of its decision, and what is said to change it: each
// remedy, with its command after a dollar sign.
type sentence struct {
	state    string
	reason   judge.Reason
	note     string
	remedies []string
	decision func(t *testing.T) judge.Decision
}

// in returns the decision on the first allocation of a situation at noon.
func in(changes ...change) func(*testing.T) judge.Decision {
	return func(t *testing.T) judge.Decision {
		t.Helper()
		return given(changes...).judge(t, noon)[0]
	}
}

// by returns the decision on the allocation of web by a census.
func by(take func(*testing.T) census.Census) func(*testing.T) judge.Decision {
	return func(t *testing.T) judge.Decision {
		t.Helper()
		inv := inventory(t, fixedStore{poolOf(webAllocation())})
		return judge.Judge(noon, policy.Default(), inv, take(t), ledger.Ledger{})[0]
	}
}

// after returns the decision on the first allocation an hour after a run saw the first situation, in
// the second one.
func after(first, later change) func(*testing.T) judge.Decision {
	return func(t *testing.T) judge.Decision {
		t.Helper()
		s := given(later)
		s.ledger = given(first).seen(t, noon)
		return s.judge(t, noon.Add(time.Hour))[0]
	}
}

// reserving returns the decision on the allocation with that key, beside objects that reserve.
func reserving(key string, objects ...ipam.Protection) func(*testing.T) judge.Decision {
	return func(t *testing.T) judge.Decision {
		t.Helper()
		return keyed(t, reservedSequence(objects...).run(t), key)
	}
}

// unseenStore returns the decision on an allocation of a store of which no pod shows anything.
func unseenStore(t *testing.T) judge.Decision {
	t.Helper()
	pool := poolOf()
	for i := range 20 {
		a := webAllocation()
		a.Key, a.IP, a.Adoption = fmt.Sprint(i), netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), ipam.NeverAdopted
		a.Owner.Pod.Name = fmt.Sprint("pod-", i)
		pool.Allocations = append(pool.Allocations, a)
	}
	return judge.Judge(noon, policy.Default(), inventory(t, outsideStore{fixedStore{pool}}), censusOf(showing(other)), ledger.Ledger{})[0]
}

// onTheNode has a lease of sandbox s1 in place of the allocation of web. The runtime has s2.
var onTheNode = all(func(s *situation) { s.pools = []ipam.Pool{poolOf(lease())} }, sandboxes("s2"))

// What operators read was made for the state that leads to it.
const (
	usesIt    = "it is kept while its pod shows it; when the pod ends, its plugin returns it, or a run finds that it leaked"
	sandboxed = "it is kept while a pod shows its sandbox; when the pod ends, its plugin returns it, or a run finds that it leaked"
	mayUseIt  = "nothing to do: its pod exists, and may use it without showing it"
	begin     = "its grace period has not begun: begin it now (needs the right to write the ledger)"
	ofWeb     = " $ ip-reaper run --context prod --ip 10.0.0.1 --pod default/web "
	ofPool    = " $ ip-reaper run --context prod --ip 10.0.0.1 --pool pool "
	remember  = "--remember --dry-run"
	again     = "or look twice, at least a minute apart, in place of the grace period (--dry-run=false releases)"
	again2m   = "--grace-period=60s --wait=2m --dry-run"
	again6m   = "--grace-period=60s --wait=6m --dry-run"
	mayList   = "let ip-reaper list pods, and what else the error names; with files, give one that has the pods $ kubectl --context prod auth can-i list pods -A"
	taintN1   = "or fence it, once you are sure that nothing runs on n1 any more: its pods are deleted by force, and the taint must go when it is back (needs rights on nodes); then run ip-reaper again $ kubectl --context prod taint nodes n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
	deleteN1  = "or, if its machine is gone for good or has joined again under another name, delete n1 (needs rights on nodes) $ kubectl --context prod delete node n1"
	readyN1   = "wait until the node is ready again"
	lookN1    = "check on that node whether its sandbox still runs $ crictl pods --namespace default --name web"
	stuck     = "or set pods.stuck to release in the policy, once no sandbox of what is held as TerminationStuck or StaticPod runs"
	byHand    = "no policy lets it go: if nothing has the address, remove it from the store by hand: "
	edits     = "if nothing needs the address, edit or delete what protects it: "
	removes   = "; if nothing needs it any more, it stays until what made it, or you, remove it"
	corrects  = "correct it in the store, by hand or through what keeps the store: store: "
	updates   = "use a version of ip-reaper that knows the field: it has an unknown field: spec.claim"
	unproven  = ", which does not prove that it has given this one up; no run releases it while a pod of that name exists"
)

// from says when a run releases what it remembers now.
func from(at string) string { return ", and a run releases it from 2026-03-01T" + at + ":00Z on" }

func sentences() []sentence {
	unnamed := owner(ipam.Owner{Sandbox: "s1"})
	releaseUnnamed := terms(func(p *policy.Policy) { p.Pods.Unnamed = policy.Release })
	older, newer, successor := supersededSituation()
	superseded := func(s *situation) { s.pools, s.pods = []ipam.Pool{poolOf(older, newer)}, []census.Pod{successor} }
	moved, elsewhere := movedSituation()
	claimed := entry(func(a *ipam.Allocation) { a.Protected = "IPAMClaim default/vm exists" })
	deleting := entry(func(a *ipam.Allocation) { a.Deleting = "it waits for the finalizers example.com/hold" })
	unknownField := entry(func(a *ipam.Allocation) { a.UnknownField = "spec.claim" })
	unreadable := entry(func(a *ipam.Allocation) { a.Unreadable = "podref: no name" })
	foreigner := entry(func(a *ipam.Allocation) { a.Foreign = "the service shop/web" })
	noToken := entry(func(a *ipam.Allocation) { a.Token = "" })
	young := entry(func(a *ipam.Allocation) { a.Created = noon.Add(-time.Minute) })
	launched := entry(func(a *ipam.Allocation) { a.Owner.Pod.Name = "virt-launcher-db-x7k2p" })
	wantedDB := func(s *situation) {
		s.pools[0].Allocations[0].Owner.Pod.Name = "db-0"
		s.pods = []census.Pod{inStatus(1, showing(ipam.PodRef{Namespace: "default", Name: "db-0"}, ip2))}
		s.sets = []census.StatefulSet{{Namespace: "default", Name: "db", Replicas: 3}}
	}
	db := entry(func(a *ipam.Allocation) { a.Owner.Pod.Name = "db-0" })
	blind := by(func(*testing.T) census.Census { return census.Census{} })
	unread := by(func(*testing.T) census.Census {
		return censusOf().With(map[ipam.PodRef]census.Reading{web: {Began: time.Now(), Err: ipam.ErrAgain}})
	})
	restored := func(changes ...change) func(*testing.T) judge.Decision {
		return func(t *testing.T) judge.Decision {
			t.Helper()
			s := given(changes...)
			back := s.pools[0].Allocations[0]
			back.Backend, back.Pool = "fixed", "pool"
			s.ledger = ledger.Ledger{}.WithRestored(maps.All(map[*ipam.Allocation]ledger.Place{&back: {}}), noon)
			return s.judge(t, noon)[0]
		}
	}
	hung := func(pod census.Pod) func(*testing.T) judge.Decision {
		calico := func(s *situation) { s.pools = []ipam.Pool{poolOf(calicoOf("n1"))} }
		return after(all(calico, pods(pod), nodes(booted("b1"))), all(calico, nodes(booted("b1"))))
	}
	const policyOfPool = "if no node has it, and the owners of all pods are trusted, write pods: {unnamed: release} into the policy, which lets go what no pod shows; see the plan with such a file first $ ip-reaper run --context prod --ip 10.0.0.1 --pool pool --policy FILE --dry-run"
	return []sentence{
		{"its podref cannot be read", judge.Unreadable, "podref: no name", []string{corrects + "podref: no name"}, in(unreadable)},
		{"a service has it", judge.NotPodOwned, "the service shop/web", []string{"ip-reaper never releases it: the service shop/web" + removes}, in(foreigner)},
		{"a tunnel had it", judge.NotPodOwned, "a tunnel", []string{"ip-reaper never releases it: a tunnel" + removes},
			in(entry(func(a *ipam.Allocation) { a.Foreign = "a tunnel" }), nodes(ready("n1")))},
		{"it names nothing", judge.OwnerUnknown, "it names no pod", []string{byHand + "store: it names no pod"}, in(owner(ipam.Owner{}))},
		{"no pods were listed", judge.NoCensus, "", []string{mayList}, blind},
		{"its pod shows it", judge.PodPresent, "", []string{usesIt}, in(pods(showing(web, ip1)))},
		{"the network-status of its pod shows it", judge.PodPresent, "", []string{usesIt}, in(pods(inStatus(1, census.Pod{Ref: web, Addresses: []netip.Addr{ip2, ip1}, Interfaces: on("net1", ip1)})))},
		{"another pod shows it", judge.AddressInUse, "shown by pod default/other", []string{"it is in use: shown by pod default/other"}, in(pods(showing(other, ip1)))},
		{"a guest reports it", judge.AddressInUse, "reported by virtual machine default/vm", []string{"it is in use: reported by virtual machine default/vm"},
			in(guests(census.VirtualMachine{Namespace: "default", Name: "vm", Addresses: []netip.Addr{ip1}}))},
		{"a pod shows its sandbox", judge.PodPresent, "a pod shows its sandbox", []string{sandboxed}, in(unnamed, pods(census.Pod{Ref: other, Sandbox: "s1"}))},
		{"a node has it for a tunnel", judge.AddressInUse, "shown by node n1", []string{"it is in use: shown by node n1"},
			in(nodes(tunnelOn("n1", ip1)), func(s *situation) { s.pools[0].Tunnels = map[netip.Addr]string{} })},
		{"its pod could not be read", judge.NoCensus, "", []string{"let ip-reaper read the pod $ kubectl --context prod auth can-i get pods -A"}, unread},
		{"its StatefulSet brings its pod back", judge.Retained, "its StatefulSet brings the pod back",
			[]string{"wait for the pod, which gets the address back; or scale down the StatefulSet, or set protection.statefulSets to ignore: StatefulSet default/db: it wants the ordinals 0 to 2"},
			in(db, sets(census.StatefulSet{Namespace: "default", Name: "db", Replicas: 3}))},
		{"it names only a sandbox", judge.OwnerUnknown, "it names only a sandbox",
			[]string{"it may have leaked: look on the nodes whether its sandbox still runs $ crictl inspectp s1", policyOfPool}, in(unnamed)},
		{"it names only a sandbox, and a pod hides its addresses", judge.OwnerUnknown, "it names only a sandbox, and not every pod shows its addresses",
			[]string{"it may have leaked: find the pods that run and show no address, such as those without a network-status, and wait for them or delete them: " +
				"store: it names only a sandbox; list of pods: 1 pods do not show their addresses $ kubectl --context prod get pods -A -o wide"},
			in(unnamed, releaseUnnamed, pods(census.Pod{Ref: other, AddressUnknown: true}))},
		{"it names only a sandbox, and a store could not be read", judge.OwnerUnknown, "it names only a sandbox, and what could not be read may name its pod",
			[]string{"it may have leaked: repair what could not be read, which the report names: store: it names only a sandbox; store: another store, or a part of it, could not be read"},
			func(t *testing.T) judge.Decision {
				w := newSequence(fixedStore(given(unnamed).pools), brokenStore{namedStore{nil, "broken"}, errForbidden})
				w.policy.Pods.Unnamed = policy.Release
				return w.run(t)[0]
			}},
		{"an empty handle names nothing", judge.OwnerUnknown, "it names neither a pod nor a sandbox", []string{"nothing to do: it names neither a pod nor a sandbox, and holds no address"},
			in(entry(func(a *ipam.Allocation) { *a = emptyHandle() }), owner(ipam.Owner{}))},
		{"its pod has ended, and the policy holds such", judge.PodFinished, "",
			[]string{"delete the finished pod", "or set pods.finished to release in the policy"}, in(pods(finished(showing(web, ip1))))},
		{"its pod has a later sandbox, and the policy holds such", judge.SandboxReplaced, "the pod has 10.0.0.2", []string{"set pods.superseded to release in the policy"},
			in(superseded, terms(func(p *policy.Policy) { p.Pods.Superseded = policy.Hold }))},
		{"its pod starts", judge.PodPresent, "", []string{mayUseIt}, in(pods(census.Pod{Ref: web, AddressUnknown: true}))},
		{"its pod shows another address", judge.PodPresent, "its pod shows 10.0.0.2 on net1",
			[]string{"nothing to do: its pod shows 10.0.0.2 on net1" + unproven}, in(pods(inStatus(1, showing(web, ip2))))},
		{"its pod shows another address, and a StatefulSet wants it", judge.PodPresent, "its pod shows 10.0.0.2 on net1",
			[]string{"nothing to do: its pod shows 10.0.0.2 on net1" + unproven + ", or its StatefulSet wants one"}, in(wantedDB)},
		{"its pod shows another address, and the policy ignores StatefulSets", judge.PodPresent, "its pod shows 10.0.0.2 on net1",
			[]string{"nothing to do: its pod shows 10.0.0.2 on net1" + unproven},
			in(wantedDB, terms(func(p *policy.Policy) { p.Protection.StatefulSets = policy.Ignore }))},
		{"a pod of its namespace shows too much", judge.AddressInUse, "pod default/many shows more addresses than ip-reaper reads",
			[]string{"it may be in use: pod default/many shows more addresses than ip-reaper reads"}, in(pods(crowded("default", "many")))},
		{"the guest of its machine reports not all", judge.AddressInUse, "virtual machine default/db does not report all addresses of its guest: run the guest agent in it, or stop it",
			[]string{"it may be in use: virtual machine default/db does not report all addresses of its guest: run the guest agent in it, or stop it"},
			in(launched, guests(census.VirtualMachine{Namespace: "default", Name: "db"}))},
		{"another cluster may have its node", judge.NodeForeign, "the store has the node b1, and the list of nodes does not", []string{
			"if another cluster keeps its addresses in this store, leave it: only a run there can tell",
			"or, if no other cluster uses the store and the machine b1 is gone for good, delete its node, with all that its pods had $ calicoctl delete node b1",
			"or, if the store is this cluster's alone, set nodes.foreign to release in the policy",
		}, in(storeNode(ipam.StoreNode{Name: "b1", Node: "b1"}), nodes(ready("n1")))},
		{"its node is not ready", judge.NodeUnreachable, "node n1 is not ready", []string{readyN1, taintN1, deleteN1}, in(onNode1, nodes(notReady("n1")))},
		{"its node is unknown, and one is not ready", judge.NodeUnreachable, "its node is unknown, and these are not ready: n1", []string{readyN1, taintN1, deleteN1},
			in(nodes(notReady("n1")))},
		{"its pod hung", judge.TerminationStuck, "its pod did not end in time on node n1", []string{lookN1, "if it does, remove it there with crictl stopp and crictl rmp, or reboot the node, which ends the hold", stuck}, hung(hanging())},
		{"its pod was a mirror", judge.StaticPod, "its pod was the mirror of a static pod on node n1", []string{
			lookN1, "if it does, find out what keeps its kubelet from making the mirror again, such as a webhook, a quota or Pod Security",
			"if it does not, reboot the node, which ends the hold", stuck,
		}, hung(mirrored())},
		{"no pod shows anything of its store", judge.StoreUnseen, "no pod shows its own address among the 20 of the store", []string{
			"check that it is the store of this cluster: if it is, the hold ends as soon as one of its pods shows its address; to release all the same, " +
				"raise limits.minEntries for one run, below which maxFraction and maxPodDrop do not apply either",
		}, unseenStore},
		{"it is being deleted", judge.BeingDeleted, "it waits for the finalizers example.com/hold",
			[]string{"find out what should remove its finalizers: it waits for the finalizers example.com/hold"}, in(deleting)},
		{"an IPAMClaim keeps it", judge.Protected, "IPAMClaim default/vm exists", []string{edits + "IPAMClaim default/vm exists"}, in(claimed)},
		{"its namespace is excluded", judge.OutOfScope, "namespaces.exclude has default", []string{"edit the policy: namespaces.exclude has default"}, in(excludes("default"))},
		{"a rule holds it", judge.RuleHold, "held by rules[0]: pods web", []string{"remove rules[0] (pods web) from the policy"}, in(holds(policy.Match{Pods: []string{"web"}}))},
		{"it was restored", judge.RestoredLately, "a restore put it back; held until 2026-03-02T12:00:00Z", []string{
			"wait: a restore put it back; held until 2026-03-02T12:00:00Z",
			"or release it once its grace period is over (ledger: a restore put it back at 2026-03-01T12:00:00Z, so its grace period ends no earlier than 2026-03-01T12:15:00Z)" + ofWeb + "--release-restored --wait --dry-run=false",
		}, restored()},
		{"it has a new field", judge.UnknownField, "it has an unknown field: spec.claim",
			[]string{updates, "or, once you know that the field does not say that the address is in use, set backends.whereabouts.unknownFields to ignore in the policy"}, in(unknownField)},
		{"it has no token", judge.NoToken, "", []string{corrects + "the allocation has no token that would reveal a change"}, in(noToken)},
		{"it is young", judge.TooYoung, "too young to tell until 2026-03-01T12:04:00Z", []string{
			begin + ofWeb + remember, "or look twice, at least a minute apart, in place of the minimum age and the grace period (--dry-run=false releases)" + ofWeb + "--grace-period=60s --min-age=0s --wait=2m --dry-run",
		}, in(young)},
		{"it is young by a rule", judge.TooYoung, "too young to tell until 2026-03-01T12:59:00Z", []string{begin + from("12:59") + ofWeb + remember},
			in(young, terms(func(p *policy.Policy) {
				p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"web"}}, MinAge: &policy.Duration{Duration: time.Hour}}}
			}))},
		{"its pod has ended", judge.PodFinished, "", []string{begin + ofWeb + remember, again + ofWeb + again2m},
			in(pods(finished(showing(web, ip1))), terms(func(p *policy.Policy) { p.Pods.Finished = policy.Release }))},
		{"its pod has another UID", judge.PodReplaced, "", []string{begin + ofWeb + remember, again + ofWeb + again2m}, in(entry(func(a *ipam.Allocation) { a.Owner.UID = "old" }), pods(census.Pod{Ref: web, UID: "new"}))},
		{"its pod is on another node", judge.PodMoved, "the pod is on node n2", []string{begin + ofWeb + remember, again + ofWeb + again2m}, in(func(s *situation) {
			s.pools, s.pods, s.nodes = []ipam.Pool{poolOf(moved)}, []census.Pod{elsewhere}, []census.Node{ready("n1"), ready("n2")}
		})},
		{"its pod is younger and waits", judge.PodReplaced, "the pod was created at 2026-03-01T11:30:00Z", []string{begin + ofWeb + remember, again + ofWeb + again6m}, in(func(s *situation) {
			again := census.Pod{Ref: web, Node: "n1", AddressUnknown: true, Starting: true, Created: noon.Add(-30 * time.Minute), Started: noon.Add(-30 * time.Minute)}
			s.pools, s.pods, s.nodes = []ipam.Pool{poolOf(moved)}, []census.Pod{again}, []census.Node{ready("n1")}
		})},
		{"its pod is on the network of its node", judge.PodReplaced, "the pod is on the network of its node", []string{begin + ofWeb + remember, again + ofWeb + again6m},
			in(nodes(ready("n1")), pods(census.Pod{Ref: web, UID: "new", HostNetwork: true, Created: noon.Add(-30 * time.Minute)}))},
		{"its pod has a later sandbox", judge.SandboxReplaced, "the pod has 10.0.0.2", []string{begin + ofWeb + remember, again + ofWeb + again6m}, in(superseded)},
		{"a handle without an address", judge.EmptyHandle, "", []string{begin + from("12:15") + " $ ip-reaper run --context prod " + remember},
			in(entry(func(a *ipam.Allocation) { *a = emptyHandle() }))},
		{"a handle without an address, and no grace is left", judge.EmptyHandle, "", []string{"a run releases it with all else that is due: no flag selects it alone"},
			func(t *testing.T) judge.Decision {
				handle := func(s *situation) { *s = given(entry(func(a *ipam.Allocation) { *a = emptyHandle() })) }
				return after(handle, handle)(t)
			}},
		{"no pod shows its sandbox", judge.SandboxAbsent, "", []string{begin + ofPool + remember, again + ofPool + again2m}, in(unnamed, releaseUnnamed, pods(showing(other, ip2)))},
		{"its pod is gone", judge.PodAbsent, "", []string{begin + ofWeb + remember, again + ofWeb + again2m}, in()},
		{"its grace period is a day", judge.PodAbsent, "", []string{begin + ofWeb + remember, again + ofWeb + again2m}, in(terms(func(p *policy.Policy) {
			p.GracePeriod = &policy.Duration{Duration: 24 * time.Hour}
		}))},
		{"its pod may take an hour to end", judge.PodAbsent, "the pod may take 1h0m0s to end", []string{begin + from("14:01") + ofWeb + remember},
			after(pods(census.Pod{Ref: web, Addresses: []netip.Addr{ip1}, TerminationGrace: time.Hour}), func(*situation) {})},
		{"its store lets addresses rest", judge.PodAbsent, "", []string{begin + from("12:20") + ofWeb + remember},
			in(func(s *situation) { s.pools[0].Rest, s.pools[0].RestBy = 20*time.Minute, "it rests" })},
		{"its store lets addresses rest for a while", judge.PodAbsent, "", []string{begin + ofWeb + remember, again + ofWeb + "--grace-period=60s --wait=11m --dry-run"},
			in(func(s *situation) { s.pools[0].Rest, s.pools[0].RestBy = 10*time.Minute, "it rests" })},
		{"a rule has a longer grace period", judge.PodAbsent, "", []string{begin + from("13:00") + ofWeb + remember}, in(terms(func(p *policy.Policy) {
			p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"web"}}, GracePeriod: &policy.Duration{Duration: time.Hour}}}
		}))},
		{"a rule has another grace period", judge.PodAbsent, "", []string{begin + ofWeb + remember, again + ofWeb + again6m}, in(terms(func(p *policy.Policy) {
			p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"web"}}, GracePeriod: &policy.Duration{Duration: 5 * time.Minute}}}
		}))},
		{"its pod is gone, and no grace is left", judge.PodAbsent, "",
			[]string{"release it (a run looks again first)" + ofWeb + "--dry-run=false"}, in(terms(releaseNow))},

		// What is kept after the rules.
		{"an object keeps it for a time", judge.Protected, reservedPool + " ns/a keeps it until 2026-03-02T12:00:00Z",
			[]string{edits + reservedPool + " ns/a keeps it until 2026-03-02T12:00:00Z"}, reserving("2", protecting("a", hours(24), ip(2)))},
		{"its sibling stays", judge.SiblingKept, "its sibling 10.0.0.2 is kept: NodeUnreachable", []string{"it goes with its sibling: its sibling 10.0.0.2 is kept: NodeUnreachable"},
			in(nodes(notReady("n1"), ready("n2")), entry(func(a *ipam.Allocation) { a.Owner.Node, a.Group = "n2", "handle-s1" }), beside(calicoOf("n1")))},

		// A node's own stores.
		{"a lease that cannot be read", judge.Unreadable, "podref: no name", []string{corrects + "podref: no name"}, in(onTheNode, unreadable)},
		{"a lease of another program", judge.NotPodOwned, "the service shop/web", []string{"ip-reaper never releases it: the service shop/web" + removes}, in(onTheNode, foreigner)},
		{"a lease that names nothing", judge.OwnerUnknown, "it names no sandbox", []string{byHand + "store: it names no sandbox"}, in(onTheNode, owner(ipam.Owner{}))},
		{"the runtime was not asked", judge.NoCensus, "",
			[]string{"let ip-reaper ask the container runtime of the node: give its socket with --runtime-endpoint $ crictl pods"}, in(onTheNode, func(s *situation) { s.sandboxes = nil })},
		{"the runtime has its sandbox", judge.SandboxPresent, "", []string{"it is in use until the kubelet removes its sandbox $ crictl inspectp s1"}, in(onTheNode, sandboxes("s1"))},
		{"its sandbox is not ready", judge.SandboxPresent, "its sandbox is not ready", []string{
			"its sandbox is not ready: the kubelet stops and removes it; if it does not, stop it by hand, and the error says why $ crictl stopp s1",
			"once it is stopped, remove it, and a run releases the address if the plugin has not $ crictl rmp s1",
		}, in(onTheNode, sandboxes("s1"), func(s *situation) { s.stopped = []string{"s1"} })},
		{"another sandbox has it", judge.AddressInUse, "libcni's cache has it for pod node/s2", []string{"it is in use: libcni's cache has it for pod node/s2"},
			in(onTheNode, func(s *situation) { s.attached = []ipam.Attachment{eth0("s2", ip1)} })},
		{"another sandbox may have it", judge.Protected, "sandbox s2 may have the address: its entry /cache/s2 cannot be decoded: no JSON",
			[]string{"delete the pod of that sandbox, so that it gets a new one: sandbox s2 may have the address: its entry /cache/s2 cannot be decoded: no JSON"},
			in(onTheNode, func(s *situation) { s.attached = []ipam.Attachment{vague("s2")} })},
		{"the pod of a lease shows it", judge.PodPresent, "", []string{usesIt}, in(onTheNode, owner(ipam.Owner{Pod: web, Sandbox: "s1"}), pods(showing(web, ip1)))},
		{"a pod shows the address of a lease", judge.AddressInUse, "shown by pod default/other", []string{"it is in use: shown by pod default/other"}, in(onTheNode, pods(showing(other, ip1)))},
		{"a guest reports the address of a lease", judge.AddressInUse, "reported by virtual machine default/vm", []string{"it is in use: reported by virtual machine default/vm"},
			in(onTheNode, guests(census.VirtualMachine{Namespace: "default", Name: "vm", Addresses: []netip.Addr{ip1}}))},
		{"a pod shows the sandbox of a lease", judge.PodPresent, "a pod shows its sandbox", []string{sandboxed}, in(onTheNode, pods(census.Pod{Ref: other, Sandbox: "s1"}))},
		{"a machine shows too much", judge.AddressInUse, "virtual machine default/vm shows more addresses than ip-reaper reads",
			[]string{"it may be in use: virtual machine default/vm shows more addresses than ip-reaper reads"},
			in(onTheNode, guests(census.VirtualMachine{Namespace: "default", Name: "vm", TooMuch: true}))},
		{"a lease is being deleted", judge.BeingDeleted, "it waits for the finalizers example.com/hold",
			[]string{"find out what should remove its finalizers: it waits for the finalizers example.com/hold"}, in(onTheNode, deleting)},
		{"a lease whose namespace exists", judge.Protected, "its network namespace exists", []string{"it is kept while this is so: its network namespace exists"},
			in(onTheNode, entry(func(a *ipam.Allocation) { a.Protected = "its network namespace exists" }))},
		{"a lease of an excluded namespace", judge.OutOfScope, "namespaces.exclude has default", []string{"edit the policy: namespaces.exclude has default"},
			in(onTheNode, owner(ipam.Owner{Pod: web, Sandbox: "s1"}), excludes("default"))},
		{"a rule holds a lease", judge.RuleHold, "held by rules[0]: backends *", []string{"remove rules[0] (backends *) from the policy"},
			in(onTheNode, holds(policy.Match{Backends: []string{"*"}}))},
		{"a lease was restored", judge.RestoredLately, "a restore put it back; held until 2026-03-02T12:00:00Z", []string{
			"wait: a restore put it back; held until 2026-03-02T12:00:00Z",
			"or release it once its grace period is over (ledger: a restore put it back at 2026-03-01T12:00:00Z, so its grace period ends no earlier than 2026-03-01T12:15:00Z)" + ofPool + "--release-restored --wait --dry-run=false",
		}, restored(onTheNode)},
		{"a lease has a new field", judge.UnknownField, "it has an unknown field: spec.claim",
			[]string{updates}, in(onTheNode, unknownField)},
		{"a lease has no token", judge.NoToken, "", []string{corrects + "the allocation has no token that would reveal a change"}, in(onTheNode, noToken)},
		{"a lease is young", judge.TooYoung, "too young to tell until 2026-03-01T12:09:00Z", []string{begin + from("12:15") + ofPool + remember}, in(onTheNode, young)},
		{"the runtime lost its sandbox", judge.SandboxAbsent, "", []string{begin + ofPool + remember, again + ofPool + again2m}, in(onTheNode)},
	}
}

// Every rule has a state here, with all that an operator reads about it.
func TestSentencesFitTheStateThatLeadsToThem(t *testing.T) {
	said := make(map[int]bool)
	for _, tt := range sentences() {
		t.Run(tt.state, func(t *testing.T) {
			d := tt.decision(t)
			said[d.Rule] = true
			equal(t, "reason", d.Reason, tt.reason)
			equal(t, "note", d.Note, tt.note)
			var remedies []string
			for _, r := range remediesOf(d) {
				if r.Command != "" {
					r.Says += " $ " + r.Command
				}
				remedies = append(remedies, r.Says)
			}
			equal(t, "remedies", remedies, tt.remedies)
		})
	}
	for i, rule := range slices.Concat(judge.Rules(), judge.NodeRules()) {
		if !said[i+1] {
			t.Errorf("no state here leads to rule %d, %s: %s", i+1, rule.Reason, rule.Doc)
		}
	}
}
