package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// manyIPs are texts of different addresses, and more than a run reads.
func manyIPs(then ...string) (ips []any) {
	for i := range 10_000 {
		ips = append(ips, fmt.Sprintf("fd00::%x", i+1))
	}
	for _, ip := range then {
		ips = append(ips, ip)
	}
	return ips
}

// A pod or a virtual machine that shows too much has its address all the same, and is named
// in a warning. It keeps nothing of another namespace (promises 1 and 2).
func TestAddressBeyondThoseThatAreReadIsKept(t *testing.T) {
	const kept = "inUse AddressInUse kept"
	warns := func(f *fixture, r *reap.Report, name string) {
		f.Helper()
		if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasSuffix(w, "more addresses than are read are shown by "+name) }) {
			f.Errorf("warnings %v, want one about %s", r.Warnings, name)
		}
	}
	t.Run("pod", func(t *testing.T) {
		f := newFixture(t)
		status := fmt.Sprintf(`[{"interface": "net1", "ips": %s}]`, strings.ReplaceAll(fmt.Sprintf("%q", manyIPs(f.leak("web-0"))), `" "`, `","`))
		f.pod("greedy", cluster.Annotation("k8s.v1.cni.cncf.io/network-status", status))
		report := f.reap(reap.ExitDone, atOnce).Report
		f.wantSaid(report, decisions{"web-0": kept})
		warns(f, report, "pod "+shop+"/greedy")
	})
	t.Run("machine", func(t *testing.T) {
		f := newFixture(t)
		f.DefineMachinesT(f.T)
		f.machine("greedy", manyIPs(f.leak("virt-launcher-old"))...)
		report := f.reap(reap.ExitDone, atOnce).Report
		f.wantSaid(report, decisions{"virt-launcher-old": kept})
		warns(f, report, "virtual machine "+shop+"/greedy")
	})
	t.Run("pod of another namespace", func(t *testing.T) {
		f := newFixture(t)
		f.leak("web-0")
		status := fmt.Sprintf(`[{"interface": "net1", "ips": %s}]`, strings.ReplaceAll(fmt.Sprintf("%q", manyIPs()), `" "`, `","`))
		_, err := f.CreatePod(f.Context(), f.Namespace(t), "greedy", cluster.Annotation("k8s.v1.cni.cncf.io/network-status", status))
		f.must(err)
		f.wantSaid(f.reap(reap.ExitDone, atOnce).Report, decisions{"web-0": released})
	})
}
