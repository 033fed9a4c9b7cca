package calico_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
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

// Between the two looks, the endpoint goes, or turns out to be of the sandbox that seemed replaced: it stays
// (promises 1 and 4).
func TestSecondLookReadsTheEndpointOfThePod(t *testing.T) {
	s := newFixture(t, calico.EtcdT(t))
	s.waits("web", 0)
	sandbox, ip := s.try("web", 0, true)
	second, other := s.try("web", 0, true)
	s.at(time.Minute, ip.String(), "suspected SandboxReplaced kept")
	for _, change := range []func(){
		func() { s.must(s.ApplyEndpoint(s.Context(), sandbox, ip)) },
		func() {
			_, err := s.Calicoctl(s.Context(), "", "delete", "workloadendpoint", strings.ReplaceAll(node, "-", "--")+"-k8s-web-eth0", "--namespace="+shop)
			s.must(err)
		},
	} {
		e := s.engine(reap.After(time.Hour))
		reads := 0
		e.Dial = []grpc.DialOption{grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, send grpc.UnaryInvoker, options ...grpc.CallOption) error {
			if read, ok := request.(*pb.RangeRequest); ok && strings.Contains(string(read.Key), "/workloadendpoints/") {
				if reads++; reads == 2 {
					change()
				}
			}
			return send(ctx, method, request, reply, conn, options...)
		})}
		report, err := e.Run(s.Context(), releaseNow)
		s.must(err)
		if got := lines(report)[ip.String()]; got != "orphan SandboxReplaced returned" || reads != 2 {
			t.Errorf("it is %q after %d reads", got, reads)
		}
		s.must(s.ApplyEndpoint(s.Context(), second, other))
	}
}

// The clock of a node is ten minutes slow, so the address of a pod that waits looks older than the pod. So does
// its start, by the same clock. An address that is older than both is of an earlier pod (promise 1).
func TestAddressOfAPodThatWaitsOnANodeWhoseClockIsSlow(t *testing.T) {
	each(t, func(s *fixture) {
		const slow = -10 * time.Minute
		_, own := s.try("own", slow, false)
		_, earlier := s.try("earlier", slow, false)
		s.waits("own", slow)
		s.waits("earlier", 0)
		s.at(0, own.String(), "inUse PodPresent kept")
		s.at(0, earlier.String(), "suspected PodReplaced kept")
		report := s.at(time.Hour, own.String(), "inUse PodPresent kept")
		if got := lines(report)[earlier.String()]; got != "orphan PodReplaced released" {
			s.Errorf("what is older than the start of its pod is %q", got)
		}
	})
}
