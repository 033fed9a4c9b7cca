package calico_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/engine"
)

// The plugin records when it gave an address. If that could not be read, a run would release an
// address whose ADD is under way (promise 4). The engine runs as if later than now.
func TestTimesOfThePluginAreRead(t *testing.T) {
	const policy = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\ndryRun: false\nlimits: {maxFraction: 1}\ngracePeriod: 0s\n"
	s := newFixture(t, calico.KubernetesT(t))
	_, ip := s.leak("gone")
	for _, tt := range []struct {
		at   time.Duration // 20 seconds before or after the age: a run takes some time
		want string
	}{
		{0, "held TooYoung kept"},
		{5*time.Minute - 20*time.Second, "held TooYoung kept"},
		{5*time.Minute + 20*time.Second, "orphan PodAbsent released"},
	} {
		r, err := s.engine(engine.After(tt.at)).Run(s.Context(), policy)
		s.must(err)
		if got := lines(r)[ip.String()]; got != tt.want {
			s.Fatalf("after %v, the address is %q, want %q", tt.at, got, tt.want)
		}
	}
}
