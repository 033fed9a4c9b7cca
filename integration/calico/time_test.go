package calico_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/engine"
)

// The plugin writes down when it gave an address. If that could not be read, an address
// would go whose ADD is under way, or what a replaced sandbox had would go while the pod
// still shows it (promise 4). The engine is run as if it were so much later than now.
func TestTimesOfThePluginAreRead(t *testing.T) {
	const (
		short, past = -20 * time.Second, 20 * time.Second // a run takes its time
		young       = "held TooYoung kept"
		soon        = "suspected SandboxReplaced kept"
		replaced    = "orphan SandboxReplaced released"
		present     = "inUse PodPresent kept"
	)
	each(t, func(s *fixture) {
		_, gone := s.leak("gone")
		_, old := s.leak("db-0")
		_, fresh := s.live("db-0")
		for _, turn := range []struct {
			at        time.Duration
			gone, old string
		}{
			{0, young, soon},
			{4*time.Minute + short, young, soon},
			{5*time.Minute + short, young, replaced},
			{5*time.Minute + past, "orphan PodAbsent released", ""},
		} {
			r, err := s.engine(engine.After(turn.at)).Run(s.Context(),
				"apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\ndryRun: false\nlimits: {maxFraction: 1}\ngracePeriod: 0s\n")
			s.must(err)
			want := map[string]string{gone.String(): turn.gone, fresh.String(): present}
			if turn.old != "" {
				want[old.String()] = turn.old
			}
			if diff := cmp.Diff(want, lines(r)); diff != "" {
				s.Fatalf("at the run after %v (-want +got):\n%s", turn.at, diff)
			}
		}
	})
}
