package calico_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// try makes the plugin give an address to one more sandbox of the pod, by a clock that is wrong by so much. If
// endpoint is set, the ADD also comes to an end.
func (s *fixture) try(pod string, clock time.Duration, endpoint bool) (calico.Sandbox, netip.Addr) {
	s.Helper()
	sandbox, ip := s.leak(pod)
	s.editBlock(ip, func(b map[string]any) {
		owner := b["attributes"].([]any)[number(b["allocations"].([]any)[s.ordinal(ip)])].(map[string]any)["secondary"].(map[string]any)
		owner["timestamp"] = time.Now().UTC().Add(clock).String()
	})
	if endpoint {
		s.must(s.ApplyEndpoint(s.Context(), sandbox, ip))
	}
	return sandbox, ip
}

// waits creates a pod on the node that pulls its images and shows no address. By the clock of its node, it
// started so much later than it was created.
func (s *fixture) waits(pod string, clock time.Duration) {
	s.Helper()
	s.pod(pod, cluster.Phase(corev1.PodPending), func(p *corev1.Pod) {
		p.Status.StartTime = new(metav1.NewTime(time.Now().Add(clock)))
	})
}

// at runs as if that much later, and checks what the report says of an address.
func (s *fixture) at(later time.Duration, address, want string) *reap.Report {
	s.Helper()
	report, err := s.engine(reap.After(later)).Run(s.Context(), releaseNow)
	s.must(err)
	if got := lines(report)[address]; got != want {
		s.Errorf("after %v, %s is %q, want %q", later, address, got, want)
	}
	return report
}

// The clock of a node is ahead while a first sandbox fails after its ADD, and is set back before the second
// one, which lives. Its pod shows nothing while it pulls images. The times prove nothing without
// the endpoint, which Calico writes last in an ADD, and the endpoint nothing without them (promises 1 and 2).
func TestTriesOfAPodThatWaits(t *testing.T) {
	const (
		kept      = "inUse PodPresent kept"
		suspected = "suspected SandboxReplaced kept"
		released  = "orphan SandboxReplaced released"
		ahead     = 30 * time.Minute
	)
	each(t, func(s *fixture) {
		s.live("live")
		for _, tt := range []struct {
			name         string
			clock        time.Duration // of the first sandbox
			first, other bool          // whether the ADD of the first one, and of the second one, has written the endpoint
			then         bool          // whether that of the second one writes it between the runs
			now          [2]string     // the verdicts on both
			later        [2]string     // an hour after that
		}{
			{"the clock was right", 0, true, true, false, [2]string{suspected, kept}, [2]string{released, kept}},
			{"the clock was set back", ahead, true, true, false, [2]string{kept, kept}, [2]string{kept, kept}},
			{"the clock was set back, and nobody writes endpoints", ahead, false, false, false, [2]string{kept, kept}, [2]string{kept, kept}},
			{"the clock was right, and nobody writes endpoints", 0, false, false, false, [2]string{kept, kept}, [2]string{kept, kept}},
			{"the clock was set back, and the second ADD is under way", ahead, true, false, true, [2]string{kept, suspected}, [2]string{kept, kept}},
		} {
			s.Run(tt.name, func(t *testing.T) {
				pod := strings.NewReplacer(" ", "-", ",", "").Replace(strings.ToLower(tt.name))
				s.waits(pod, 0)
				_, first := s.try(pod, tt.clock, tt.first)
				second, other := s.try(pod, 0, tt.other)
				begin := tt.clock + time.Minute // then no allocation is of the future
				s.at(begin, first.String(), tt.now[0])
				s.at(begin, other.String(), tt.now[1])
				if tt.then {
					s.must(s.ApplyEndpoint(s.Context(), second, other))
				}
				report := s.at(begin+time.Hour, first.String(), tt.later[0])
				if got := lines(report)[other.String()]; got != tt.later[1] {
					t.Errorf("the second one is %q, want %q", got, tt.later[1])
				}
			})
		}
	})
}
