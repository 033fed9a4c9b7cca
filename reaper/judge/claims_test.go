package judge_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

// leaked returns n allocations of 10.0.0.1 and so on. Each names a pod that is gone.
func leaked(n int) []ipam.Allocation {
	as := reapertest.Allocations(n)
	for i := range as {
		as[i].IP = ip(byte(i + 1))
	}
	return as
}

// inStatus returns the pod, with its first n addresses in its status.
func inStatus(n int, pod census.Pod) census.Pod {
	pod.InStatus = n
	return pod
}

// Promise 1, 2. Annotations keep an allocation of another pod unless the policy narrows
// that. They always keep one that may be of the pod itself.
func TestAnnotationOfAnotherPodIsEvidenceAsThePolicySays(t *testing.T) {
	inUse, goes := decision{judge.InUse, judge.AddressInUse, "shown by pod default/other"}, decision{judge.Suspected, judge.PodAbsent, ""}
	for _, tt := range []struct {
		name      string
		entry     func(*ipam.Allocation)
		pod       census.Pod
		keep, own decision
	}{
		{"its annotation", nil, showing(other, ip1), inUse, goes},
		{"its status", nil, inStatus(1, showing(other, ip1)), inUse, inUse},
		{"its annotation, and another address in its status", nil, inStatus(1, showing(other, ip2, ip1)), inUse, goes},
		{"the annotation of the pod that it names", nil, showing(web, ip1), decision{judge.InUse, judge.PodPresent, ""}, decision{judge.InUse, judge.PodPresent, ""}},
		{"its annotation, and the allocation names no pod", func(a *ipam.Allocation) { a.Owner.Pod = ipam.PodRef{} }, showing(other, ip1), inUse, inUse},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			if tt.entry != nil {
				tt.entry(&a)
			}
			for value, want := range map[policy.AnnotationEvidence]decision{policy.KeepAnnotations: tt.keep, policy.OwnAnnotations: tt.own, "": tt.keep, "nonsense": tt.keep} {
				s := situation{pools: []ipam.Pool{poolOf(a)}, pods: []census.Pod{tt.pod}}
				s.policy = func(p *policy.Policy) { p.Pods.Unnamed, p.Evidence.Annotations = policy.Release, value }
				equal(t, "verdict under "+string(value), decisionOf(s.judge(t, noon)[0]), want)
			}
		})
	}
}

// Promise 1, 2. The report of a guest keeps an allocation of any pod under every policy.
func TestReportOfAGuestKeepsTheAddressUnderEveryPolicy(t *testing.T) {
	s := situation{pools: []ipam.Pool{poolOf(webAllocation())}}
	s.guests = []census.VirtualMachine{{Namespace: "v", Name: "m", Addresses: []netip.Addr{ip1}, Reported: true}}
	s.policy = func(p *policy.Policy) { p.Evidence.Annotations = policy.OwnAnnotations }
	equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), decision{judge.InUse, judge.AddressInUse, "reported by virtual machine v/m"})
}

// Promise 2, 7. An annotation that alone keeps what others leaked is named in a warning, and so is
// the report of a guest.
func TestReportNamesWhatAloneKeepsAllocationsOfOthers(t *testing.T) {
	shown := func(n int, example, hint string) string {
		return fmt.Sprintf("some allocations are kept only by annotations of other pods: default/other (%d, such as %s). "+
			"If the annotations are false, correct them%s", n, example, hint)
	}
	const orOwn = ", or set evidence.annotations to own"
	const hidden = "2 allocations without a pod name, such as 10.0.0.1, kept because some pods do not show all their addresses. " +
		"Correct the annotations of default/other: network-status is missing, cannot be decoded, or leaves out a network that the pod requests"
	reported := func(n int) string {
		return fmt.Sprintf("some allocations of others are kept only by what the guests of virtual machines report: "+
			"default/vm (%d, such as 10.0.0.1). If that is false, correct it in the guest, or stop the machine", n)
	}
	guest := func(name string, ips ...netip.Addr) census.VirtualMachine {
		return census.VirtualMachine{Namespace: "default", Name: name, Addresses: ips, Reported: true}
	}
	launcher := func(a *ipam.Allocation) { a.Owner.Pod.Name = "virt-launcher-vm-x7k2p" }
	unnamed := func(a *ipam.Allocation) { a.Owner.Pod = ipam.PodRef{} }
	hiding := inStatus(1, census.Pod{Ref: other, Addresses: []netip.Addr{ip(9)}, AddressUnknown: true})
	for _, tt := range []struct {
		name   string
		entry  func(*ipam.Allocation)
		pods   []census.Pod
		want   []string
		guests []census.VirtualMachine
	}{
		{"it shows them", nil, []census.Pod{inStatus(1, showing(other, ip(9), ip(1), ip(2)))}, []string{shown(2, "10.0.0.1", orOwn)}, nil},
		{"its status has one of them", nil, []census.Pod{inStatus(1, showing(other, ip(2), ip(1)))}, []string{shown(1, "10.0.0.1", orOwn)}, nil},
		{"the allocations name it", func(a *ipam.Allocation) { a.Owner.Pod = other }, []census.Pod{showing(other, ip(1), ip(2))}, nil, nil},
		{"they would be held without it", func(a *ipam.Allocation) { a.Protected = "claimed" }, []census.Pod{showing(other, ip(1))}, nil, nil},
		{"they name no pod", unnamed, []census.Pod{showing(other, ip(1), ip(2))}, []string{shown(2, "10.0.0.1", "")}, nil},
		{"they name no pod, and it shows their sandbox", unnamed, []census.Pod{{Ref: other, Sandbox: "s1"}}, []string{shown(2, "10.0.0.1", "")}, nil},
		{"they name no pod, and its annotations hide addresses", unnamed, []census.Pod{hiding}, []string{hidden}, nil},
		{"it shows them, and so does a pod that has ended", nil,
			[]census.Pod{showing(other, ip(1), ip(2)), finished(showing(ipam.PodRef{Namespace: "default", Name: "ended"}, ip(1)))},
			[]string{shown(2, "10.0.0.1", orOwn)}, nil},
		{"they name no pod, and another pod has no status", unnamed, []census.Pod{hiding, {Ref: web, AddressUnknown: true}}, nil, nil},
		{"a guest reports them", nil, nil, []string{reported(2)}, []census.VirtualMachine{guest("vm", ip(1), ip(2))}},
		{"a guest reports one of them, and a pod shows it", nil, []census.Pod{showing(other, ip(1))}, []string{shown(1, "10.0.0.1", orOwn), reported(1)},
			[]census.VirtualMachine{guest("vm", ip(1))}},
		{"a guest reports them, and they are of a pod of its machine", launcher, nil, nil, []census.VirtualMachine{guest("vm", ip(1), ip(2))}},
		{"a guest reports one of them, and so does that of their machine", launcher, []census.Pod{{Ref: other}}, nil,
			[]census.VirtualMachine{guest("vm", ip(1)), guest("another", ip(1))}},
		{"they name no pod, and a guest reports them", unnamed, nil, []string{reported(2)}, []census.VirtualMachine{guest("vm", ip(1), ip(2))}},
		{"a guest reports them, and they would be held without it", func(a *ipam.Allocation) { a.Protected = "claimed" }, nil, nil,
			[]census.VirtualMachine{guest("vm", ip(1), ip(2))}},
		{"they are handles without an address", func(a *ipam.Allocation) { a.EmptyHandle = true }, []census.Pod{{Ref: other, Sandbox: "s1"}}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			as := leaked(2)
			for i := range as {
				if tt.entry != nil {
					tt.entry(&as[i])
				}
			}
			p := policy.Default()
			releaseNow(&p)
			p.Pods.Unnamed = policy.Release
			warnings := func() []string {
				s := situation{pools: []ipam.Pool{poolOf(as...)}, pods: tt.pods, guests: tt.guests, policy: func(to *policy.Policy) { *to = p }}
				return judge.ClaimWarnings(s.census(t), s.judge(t, noon))
			}
			equal(t, "warnings", warnings(), tt.want)
			p.Evidence.Annotations = policy.OwnAnnotations
			for _, sentence := range warnings() {
				if as[0].Owner.Pod != (ipam.PodRef{}) && len(tt.guests) == 0 {
					t.Errorf("with own: %s", sentence)
				}
			}
		})
	}
}
