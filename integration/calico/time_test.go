package calico_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/engine"
)

// What waits is judged by a later run: the engine is run by the test, as if it
// were so much later than now. The times are some seconds off the borders, since
// a run takes its time.
const (
	header = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\ndryRun: false\nlimits: {maxFraction: 1}\n"
	atOnce = header + "gracePeriod: 0s\nminAge: 0s\n"

	short, past = -20 * time.Second, 20 * time.Second

	waits   = "suspected PodAbsent kept"
	gone    = "orphan PodAbsent released"
	present = "inUse PodPresent kept"
)

// A turn is one run of several, and what it has to make of what was planted.
type turn struct {
	at   time.Duration
	do   func()            // before the run; may be nil
	want map[string]string // by the names that the test has for addresses and handles
}

// through takes the turns, one after the other, with one policy.
func (s *fixture) through(terms string, names map[string]string, turns []turn) {
	s.Helper()
	var findings *calico.CheckReport
	for _, m := range turns {
		if m.do != nil {
			m.do()
		}
		was := s.state()
		if m.do != nil || findings == nil {
			findings = s.check()
		}
		r, err := s.engine(engine.After(m.at)).Run(s.Context(), terms)
		s.must(err)
		got := lines(r)
		for name, want := range m.want {
			if got[names[name]] != want {
				s.Errorf("%s (%s) is %q, want %q", name, names[name], got[names[name]], want)
			}
			delete(got, names[name])
		}
		for name, line := range got {
			s.Errorf("no turn expects %s, which is %q", name, line)
		}
		s.wantReleased(was, r)
		findings = s.wantSound(findings, r)
		if s.Failed() {
			s.Fatalf("at the run after %v", m.at)
		}
		if m.do != nil {
			continue
		}
		s.wantHarmless(r, findings)
	}
}

// Grace is counted from the first run that missed the pod (1, 2), and applies
// although the node is gone (8, 13), where Calico releases at once: a node object
// that is gone is no machine that is off, and what is on it is not known to be.
// Calico never releases without a grace period (3); here it is that of the
// policy, which is 15 minutes where it says nothing.
func TestGrace(t *testing.T) {
	each(t, func(s *fixture) {
		s.must(s.CreateNode(s.Context(), "node-2"))
		on2 := func(pod string) (calico.Sandbox, netip.Addr) {
			sandbox := calico.NewSandbox(shop, pod, "node-2")
			return sandbox, s.add(sandbox)[0]
		}
		_, plain := s.leak("gone")
		_, alone := on2("alone")
		stays, ofPod := on2("stays")
		s.pod("stays", stays.PodOptions(ofPod)...)
		again, handed := s.leak("again")
		_, back := s.leak("back")
		s.must(s.Cluster.Kube.CoreV1().Nodes().Delete(s.Context(), "node-2", deleteNow))
		if s.Etcd != nil {
			_, err := s.Calicoctl(s.Context(), "", "delete", "node", "node-2")
			s.must(err)
		}
		names := map[string]string{
			"of a pod that is gone": plain.String(), "of a node that is gone": alone.String(),
			"of a pod whose node is gone": ofPod.String(), "handed on": handed.String(), "of a pod that was back": back.String(),
		}
		const first = time.Hour
		s.through(header, names, []turn{
			{at: first, want: map[string]string{
				"of a pod that is gone": waits, "of a node that is gone": waits, "of a pod whose node is gone": present,
				"handed on": waits, "of a pod that was back": waits,
			}},
			{at: first + 10*time.Minute, want: map[string]string{
				"of a pod that is gone": waits, "of a node that is gone": waits, "of a pod whose node is gone": present,
				"handed on": waits, "of a pod that was back": present,
			}, do: func() {
				s.must(s.Del(s.Context(), again))
				again.IP = handed
				s.add(again) // the same address, the same handle
				s.pod("back")
			}},
			{at: first + 15*time.Minute + short, do: func() {
				s.must(s.Cluster.DeletePod(s.Context(), shop, "back"))
			}, want: map[string]string{
				"of a pod that is gone": waits, "of a node that is gone": waits, "of a pod whose node is gone": present,
				"handed on": waits, "of a pod that was back": waits,
			}},
			{at: first + 15*time.Minute + past, want: map[string]string{
				"of a pod that is gone": gone, "of a node that is gone": gone, "of a pod whose node is gone": waits,
				"handed on": waits, "of a pod that was back": waits,
			}, do: func() { s.must(s.Cluster.DeletePod(s.Context(), shop, "stays")) }},
			{at: first + 25*time.Minute + past, want: map[string]string{
				"of a pod whose node is gone": waits, "handed on": gone, "of a pod that was back": waits,
			}},
			{at: first + 31*time.Minute, want: map[string]string{
				"of a pod whose node is gone": gone, "of a pod that was back": gone,
			}},
		})
	})
}

// The plugin writes down when it gave an address; an ADD may be under way.
func TestYoungAddressesStay(t *testing.T) {
	each(t, func(s *fixture) {
		_, ip := s.leak("gone")
		names := map[string]string{"leak": ip.String()}
		s.through(header+"gracePeriod: 0s\n", names, []turn{
			{at: 0, want: map[string]string{"leak": "held TooYoung kept"}},
			{at: 5*time.Minute + short, want: map[string]string{"leak": "held TooYoung kept"}},
			{at: 5*time.Minute + past, want: map[string]string{"leak": gone}},
		})
	})
}

// A pod comes back under its name in a new sandbox, as those of a StatefulSet do
// (38). What the old one had goes, but not sooner than an ADD may take. Meanwhile the pod
// still shows the old sandbox; Calico says that the new one is later.
func TestReplacedSandboxes(t *testing.T) {
	const replacedSoon, replaced = "suspected SandboxReplaced kept", "orphan SandboxReplaced released"
	each(t, func(s *fixture) {
		_, old := s.leak("db-0")
		_, fresh := s.live("db-0")
		names := map[string]string{"old": old.String(), "new": fresh.String()}
		s.through(atOnce, names, []turn{
			{at: 0, want: map[string]string{"old": replacedSoon, "new": present}},
			{at: 4*time.Minute + short, want: map[string]string{"old": replacedSoon, "new": present}},
			{at: 4*time.Minute + past, want: map[string]string{"old": replaced, "new": present}},
		})

		// The second ADD is under way at the first run.
		_, first := s.comesAndGoes("db-1")
		second, underWay := s.leak("db-1")
		names = map[string]string{"other": fresh.String(), "first": first.String(), "second": underWay.String()}
		s.through(atOnce, names, []turn{
			{at: 0, want: map[string]string{"other": present, "first": present, "second": present}},
			{at: 4*time.Minute + past, want: map[string]string{"other": present, "first": replaced, "second": present}, do: func() {
				s.must(s.Cluster.UpdatePod(s.Context(), shop, "db-1", second.PodOptions(underWay)...))
			}},
		})

		// It had its address for an hour, and so did the one that replaced it.
		_, third := s.comesAndGoes("db-2")
		last, fourth := s.leak("db-2")
		s.must(s.Cluster.UpdatePod(s.Context(), shop, "db-2", last.PodOptions(fourth)...))
		names = map[string]string{"other": fresh.String(), "second": underWay.String(), "third": third.String(), "fourth": fourth.String()}
		others := map[string]string{"other": present, "second": present, "fourth": present}
		with := func(third string) map[string]string {
			all := map[string]string{"third": third}
			for name, want := range others {
				all[name] = want
			}
			return all
		}
		s.through(atOnce+"pods: {superseded: hold}\n", names, []turn{{at: time.Hour, want: with("held SandboxReplaced kept")}})
		s.through(header, names, []turn{
			{at: time.Hour, want: with(replacedSoon)},
			{at: time.Hour + 15*time.Minute + short, want: with(replacedSoon)},
			{at: time.Hour + 15*time.Minute + past, want: with(replaced)},
		})
	})
}

// comesAndGoes is live for a pod that will change: without the endpoint in etcd,
// which only Calico's plugin would keep up to date.
func (s *fixture) comesAndGoes(pod string) (calico.Sandbox, netip.Addr) {
	s.Helper()
	sandbox, ip := s.leak(pod)
	s.pod(pod, sandbox.PodOptions(ip)...)
	return sandbox, ip
}

// Before 3.18 Calico did not write down when: then the ledger counts the four minutes.
func TestReplacedSandboxOfUnknownAge(t *testing.T) {
	const replacedSoon, replaced = "suspected SandboxReplaced kept", "orphan SandboxReplaced released"
	each(t, func(s *fixture) {
		_, old := s.leak("db-0")
		s.editBlock(old, func(b map[string]any) {
			delete(s.attributeOf(b, old)["secondary"].(map[string]any), "timestamp")
		})
		_, fresh := s.live("db-0")
		names := map[string]string{"old": old.String(), "new": fresh.String()}
		s.through(atOnce, names, []turn{
			{at: time.Hour, want: map[string]string{"old": replacedSoon, "new": present}},
			{at: time.Hour + 4*time.Minute + short, want: map[string]string{"old": replacedSoon, "new": present}},
			{at: time.Hour + 4*time.Minute + past, want: map[string]string{"old": replaced, "new": present}},
		})
	})
}

// Handles without an address (34), which Calico's GC leaves alone and calicoctl
// deletes at sight. They look like those whose ADD is under way, since the plugin
// writes the handle first: the ledger decides, and for what changed in between it
// begins anew. A crash of ours between block and handle leaves the same (43).
func TestHandlesWithoutAddresses(t *testing.T) {
	const soon, due = "suspected EmptyHandle kept", "orphan EmptyHandle released"
	each(t, func(s *fixture) {
		block := netip.MustParsePrefix("10.30.0.0/26")
		names, last := map[string]string{}, 0
		put := func(name, id string, blocks map[netip.Prefix]int) {
			names[name] = id
			s.must(s.PutHandle(s.Context(), id, blocks))
		}
		sandbox := func() string { last++; return "k8s-pod-network." + fmt.Sprintf("%064x", last) }
		one := map[netip.Prefix]int{block: 1}
		put("stray", sandbox(), one)
		put("empty", sandbox(), map[netip.Prefix]int{})
		put("of two blocks", sandbox(), map[netip.Prefix]int{block: 1, netip.MustParsePrefix("fd30::/122"): 1})
		put("written anew", sandbox(), one)
		put("whose ADD is under way", sandbox(), one)
		put("of a sandbox that a pod shows", sandbox(), one)
		s.pod("shows", cluster.Annotation(calico.ContainerIDAnnotation, fmt.Sprintf("%064x", last)))
		put("of a pod by its name", "shop.by-name", one)
		put("of a pod that is there, by its name", "shop.shows", one)
		put("tunnel", "vxlan-tunnel-addr-node-1", one)
		put("Windows", "windows-reserved-ipam-handle", one)
		put("machine", "k8s-pod-network.vmi.shop.vm", one)
		put("by hand", "By-Hand", one)
		half := sandbox()
		s.must(s.PutHandle(s.Context(), half, one))
		s.must(s.Edit(s.Context(), calico.Handle, s.HandleName(half), func(h map[string]any) { h["deleted"] = true }))

		want := func(differs map[string]string) map[string]string {
			all := map[string]string{
				"of a sandbox that a pod shows": present, "of a pod that is there, by its name": present,
				"tunnel": "held NotPodOwned kept", "Windows": "held NotPodOwned kept", "machine": "held NotPodOwned kept",
				"by hand": "held OwnerUnknown kept",
			}
			for name, line := range differs {
				all[name] = line
			}
			return all
		}
		var comes calico.Sandbox
		s.through(atOnce, names, []turn{
			{at: 0, want: want(map[string]string{
				"stray": soon, "empty": soon, "of two blocks": soon, "written anew": soon,
				"whose ADD is under way": soon, "of a pod by its name": soon,
			})},
			{at: 4*time.Minute + short, do: func() {
				s.must(s.Delete(s.Context(), calico.Handle, s.HandleName(names["written anew"])))
				put("written anew", names["written anew"], one)
				comes = calico.NewSandbox(shop, "comes", node)
				comes.ContainerID = names["whose ADD is under way"][len("k8s-pod-network."):]
				names["whose ADD has come"] = s.add(comes)[0].String()
				s.pod("comes", cluster.Phase(corev1.PodPending))
			}, want: want(map[string]string{
				"stray": soon, "empty": soon, "of two blocks": soon, "written anew": soon,
				"whose ADD has come": present, "of a pod by its name": soon,
			})},
			{at: 4*time.Minute + past, want: want(map[string]string{
				"stray": due, "empty": due, "of two blocks": due, "written anew": soon,
				"whose ADD has come": present, "of a pod by its name": due,
			})},
			{at: 8*time.Minute + past, want: want(map[string]string{"written anew": due, "whose ADD has come": present})},
		})
		if _, err := s.Get(s.Context(), calico.Handle, s.HandleName(half)); err != nil {
			s.Error(err) // it is Calico's to finish
		}
		s.must(s.Del(s.Context(), comes))
	})
}
