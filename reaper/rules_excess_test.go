package reaper_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// crowded is a pod that shows more addresses than are read.
func crowded(namespace, name string) reaper.Pod {
	return reaper.Pod{Ref: reaper.PodRef{Namespace: namespace, Name: name}, AddressUnknown: true, TooMuch: true}
}

// Promise 1, 2. What was not read may be any address that names a pod of the same
// namespace, or no pod. A tenant keeps nothing that names a pod of another namespace.
func TestWhatShowsTooMuchMayHaveTheAddress(t *testing.T) {
	gone := decision{reaper.Suspected, reaper.PodAbsent, ""}
	by := func(name string) decision {
		return decision{reaper.InUse, reaper.AddressInUse, name + " shows more addresses than are read"}
	}
	unnamed := func(a *reaper.Allocation) { a.Owner.Pod = reaper.PodRef{} }
	machine := func(namespace string) []reaper.VirtualMachine {
		return []reaper.VirtualMachine{{Namespace: namespace, Name: "vm", TooMuch: true}}
	}
	for _, tt := range []struct {
		name     string
		change   func(*reaper.Allocation)
		pods     []reaper.Pod
		machines []reaper.VirtualMachine
		want     decision
	}{
		{"a pod of the namespace", nil, []reaper.Pod{crowded("default", "b"), crowded("default", "a")}, nil, by("pod default/a")},
		{"a pod of another namespace", nil, []reaper.Pod{crowded("elsewhere", "a")}, nil, gone},
		{"a pod of the namespace that has ended", nil, []reaper.Pod{finished(crowded("default", "a"))}, nil, gone},
		{"the pod itself", nil, []reaper.Pod{crowded("default", "web")}, nil, decision{reaper.InUse, reaper.PodPresent, ""}},
		{"a machine of the namespace", nil, nil, machine("default"), by("virtual machine default/vm")},
		{"a machine of another namespace", nil, nil, machine("elsewhere"), gone},
		{"any machine, and no pod is named", unnamed, nil, machine("elsewhere"), by("virtual machine elsewhere/vm")},
		{"any machine, and the name was derived", func(a *reaper.Allocation) { a.Inferred = true }, nil, machine("elsewhere"),
			by("virtual machine elsewhere/vm")},
		{"any pod, and no pod is named", unnamed, []reaper.Pod{crowded("elsewhere", "a")}, nil,
			decision{reaper.Held, reaper.OwnerUnknown, "it names a sandbox only, and not every pod shows its addresses"}},
		{"it protects an address", func(a *reaper.Allocation) {
			a.IP, a.Protects = netip.Addr{}, &reaper.Protection{IPs: []netip.Addr{ip1}}
		}, []reaper.Pod{crowded("elsewhere", "a")}, nil, by("pod elsewhere/a")},
		{"it holds no address", func(a *reaper.Allocation) { a.EmptyHandle, a.IP = true, netip.Addr{} },
			[]reaper.Pod{crowded("default", "a")}, nil, decision{reaper.Suspected, reaper.EmptyHandle, ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			if tt.change != nil {
				tt.change(&a)
			}
			h := newHarness(fixedStore{poolOf(a)})
			h.policy.Pods.Unnamed, h.policy.GracePeriod = policy.Release, policy.Default().GracePeriod
			h.pods.Add(reaper.Pod{Ref: other})
			h.pods.Add(tt.pods...)
			h.pods.AddMachines(tt.machines...)
			equal(t, "verdict", reported(t, h.run(t), "1"), tt.want)
		})
	}
}

// A report names the first few, and counts the others.
func TestWhatShowsTooMuchIsAWarning(t *testing.T) {
	h := newHarness(fixedStore{poolOf(webAllocation())})
	h.pods.AddMachines(reaper.VirtualMachine{Namespace: "vms", Name: "vm", TooMuch: true})
	for i := range 6 {
		h.pods.Add(crowded("default", fmt.Sprintf("pod-%d", 5-i)))
	}
	h.pods.Add(finished(crowded("default", "ended")))
	warnings := slices.DeleteFunc(h.run(t).Warnings, func(w string) bool { return !strings.Contains(w, "than are read") })
	equal(t, "warnings", warnings, []string{"what names a pod of the same namespace, or no pod, is kept, since more addresses than are read are shown by " +
		"pod default/pod-0, pod default/pod-1, pod default/pod-2, pod default/pod-3, pod default/pod-4 and 2 more"})
}

// A finished pod may have the address of an allocation that names no pod, as far as the
// policy holds the addresses of finished pods. Then a warning names the pod.
func TestFinishedPodThatShowsTooMuchCountsByThePolicy(t *testing.T) {
	for finishedPods, want := range map[policy.Disposition]struct {
		decision decision
		warnings int
	}{
		policy.Hold:    {decision{reaper.InUse, reaper.AddressInUse, "pod tenant/job shows more addresses than are read"}, 1},
		policy.Release: {decision{reaper.Orphaned, reaper.SandboxAbsent, ""}, 0},
	} {
		t.Run(string(finishedPods), func(t *testing.T) {
			a := webAllocation()
			a.Owner.Pod = reaper.PodRef{}
			h := newHarness(fixedStore{poolOf(a)})
			h.policy.Pods.Unnamed, h.policy.Pods.Finished = policy.Release, finishedPods
			h.policy.DryRun = new(true)
			h.pods.Add(reaper.Pod{Ref: other}, finished(crowded("tenant", "job")))
			report := h.run(t)
			equal(t, "verdict", reported(t, report, "1"), want.decision)
			if len(report.Warnings) != want.warnings {
				t.Errorf("warnings %q, want %d", report.Warnings, want.warnings)
			}
		})
	}
}
