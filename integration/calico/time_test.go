package calico_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/engine"
)

// The plugin records when it gave an address. If that could not be read, a run would release an
// address whose ADD is under way, or an address of a replaced sandbox that the pod still shows
// (promise 4). The engine runs as if later than now.
func TestTimesOfThePluginAreRead(t *testing.T) {
	const (
		policy      = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\ndryRun: false\nlimits: {maxFraction: 1}\ngracePeriod: 0s\n"
		atOnce      = policy + "minAge: 0s\n"
		short, past = -20 * time.Second, 20 * time.Second // a run takes some time
		young       = "held TooYoung kept"
		soon        = "suspected SandboxReplaced kept"
	)
	s := newFixture(t, calico.KubernetesT(t))
	through := func(policy string, at time.Duration, want map[netip.Addr]string) {
		s.Helper()
		r, err := s.engine(engine.After(at)).Run(s.Context(), policy)
		s.must(err)
		wanted := map[string]string{}
		for ip, line := range want {
			wanted[ip.String()] = line
		}
		if diff := cmp.Diff(wanted, lines(r)); diff != "" {
			s.Fatalf("at the run after %v (-want +got):\n%s", at, diff)
		}
	}
	_, gone := s.leak("gone")
	through(policy, 0, map[netip.Addr]string{gone: young})
	through(policy, 5*time.Minute+short, map[netip.Addr]string{gone: young})
	through(policy, 5*time.Minute+past, map[netip.Addr]string{gone: "orphan PodAbsent released"})

	_, old := s.leak("db-0")
	_, fresh := s.live("db-0")
	const present = "inUse PodPresent kept"
	through(atOnce, 0, map[netip.Addr]string{old: soon, fresh: present})
	through(atOnce, 4*time.Minute+short, map[netip.Addr]string{old: soon, fresh: present})
	through(atOnce, 4*time.Minute+past, map[netip.Addr]string{old: "orphan SandboxReplaced released", fresh: present})
}
