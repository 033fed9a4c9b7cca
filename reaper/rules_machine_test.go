package reaper_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 1, 2. After a live migration, a guest keeps an address of a pod that is gone. The pod's
// name says of which machine it was; the API server cuts long names off.
func TestGuestThatDoesNotReportItsAddressesMayHaveThoseOfItsPods(t *testing.T) {
	long := strings.Repeat("long-", 12)
	mayHave := func(machine string) decision {
		return decision{
			reaper.InUse, reaper.AddressInUse,
			"virtual machine default/" + machine + " does not report all addresses of its guest: run the guest agent in it, or stop it",
		}
	}
	gone := decision{reaper.Suspected, reaper.PodAbsent, ""}
	launcher := func(f func(p *reaper.Pod)) []reaper.Pod {
		p := reaper.Pod{Ref: reaper.PodRef{Namespace: "default", Name: "virt-launcher-db-x7k2p"}}
		f(&p)
		return []reaper.Pod{p}
	}
	for _, tt := range []struct {
		name    string
		pod     string
		machine reaper.VirtualMachine
		created time.Time
		pods    []reaper.Pod
		want    decision
	}{
		{"it is of the machine", "virt-launcher-db-x7k2p", reaper.VirtualMachine{Name: "db"}, noon, nil, mayHave("db")},
		{"it is of a machine with a long name", "virt-launcher-" + long[:58-14] + "x7k2p", reaper.VirtualMachine{Name: long + "vm"}, noon, nil, mayHave(long + "vm")},
		{"it is of another machine", "virt-launcher-db-2-x7k2p", reaper.VirtualMachine{Name: "db"}, noon, nil, gone},
		{"it is of a machine of another namespace", "virt-launcher-db-x7k2p", reaper.VirtualMachine{Name: "db", Namespace: "elsewhere"}, noon, nil, gone},
		{"it is of no machine", "web", reaper.VirtualMachine{Name: "web"}, noon, nil, gone},
		{"its name is short", "x", reaper.VirtualMachine{Name: "db"}, noon, nil, gone},
		{"the machine reports all", "virt-launcher-db-x7k2p", reaper.VirtualMachine{Name: "db", Reported: true}, noon, nil, gone},
		{"the machine is younger", "virt-launcher-db-x7k2p", reaper.VirtualMachine{Name: "db", Created: noon.Add(61 * time.Second)}, noon, nil, gone},
		{"the machine is younger, or a clock is wrong", "virt-launcher-db-x7k2p", reaper.VirtualMachine{Name: "db", Created: noon.Add(time.Minute)}, noon, nil, mayHave("db")},
		{"the machine is younger than what has no time", "virt-launcher-db-x7k2p", reaper.VirtualMachine{Name: "db", Created: noon.Add(time.Hour)}, time.Time{}, nil, mayHave("db")},
		{"the pod has ended", "virt-launcher-db-x7k2p", reaper.VirtualMachine{Name: "db"}, noon, launcher(func(p *reaper.Pod) { p.Finished = true }), mayHave("db")},
		{"the pod exists", "virt-launcher-db-x7k2p", reaper.VirtualMachine{Name: "db"}, noon, launcher(func(*reaper.Pod) {}), decision{reaper.InUse, reaper.PodPresent, ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			a.Owner.Pod, a.Owner.UID, a.Created = reaper.PodRef{Namespace: "default", Name: tt.pod}, "", tt.created
			h := newHarness(fixedStore{poolOf(a)})
			h.now = noon.Add(2 * time.Hour)
			h.policy.GracePeriod, h.policy.Pods.Finished = policy.Default().GracePeriod, policy.Release
			h.pods.Add(reaper.Pod{Ref: other})
			h.pods.Add(tt.pods...)
			if tt.machine.Namespace == "" {
				tt.machine.Namespace = "default"
			}
			h.pods.AddMachines(reaper.VirtualMachine{Namespace: "default", Name: "another"}, tt.machine)
			equal(t, "verdict", reported(t, h.run(t), "1"), tt.want)
		})
	}
}
