package calico_test

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/engine"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A churn is pods that come and go at the same time, each with real ADDs and DELs,
// and the addresses that they have at a moment.
type churn struct {
	*fixture
	mu    sync.Mutex
	lives map[netip.Addr]string // the pod by address
	want  map[string]bool       // the addresses of those that stay
}

// What becomes of a pod.
const (
	stays    = iota
	leaves   // with a DEL, as it should
	vanishes // without one
	lingers  // with one that comes when the pod is gone
	fates
)

// life is that of one pod, from its creation to its fate.
func (c *churn) life(pod string, fate int) error {
	ctx := c.Context()
	sandbox := calico.NewSandbox(shop, pod, node)
	sandbox.IPv4, sandbox.IPv6 = true, fate != leaves
	_, err := c.Cluster.CreatePod(ctx, shop, pod, cluster.OnNode(node), cluster.Phase(corev1.PodPending))
	if err != nil {
		return err
	}
	ips, err := c.Add(ctx, sandbox)
	if err != nil {
		return err
	}
	if err := c.given(pod, ips, fate == stays); err != nil {
		return err
	}
	up := append(sandbox.PodOptions(ips...), cluster.Phase(corev1.PodRunning))
	if err := c.Cluster.UpdatePod(ctx, shop, pod, up...); err != nil {
		return err
	}
	if fate == stays {
		if c.Etcd != nil {
			return c.ApplyEndpoint(ctx, sandbox, ips...)
		}
		return nil
	}
	c.going(ips)
	if fate == leaves {
		err = c.Del(ctx, sandbox)
	}
	if err == nil {
		err = c.Cluster.DeletePod(ctx, shop, pod)
	}
	if err == nil && fate == lingers {
		err = c.Del(ctx, sandbox)
	}
	return err
}

// given notes that the pod was given the addresses.
func (c *churn) given(pod string, ips []netip.Addr, stays bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ip := range ips {
		if other := c.lives[ip]; other != "" {
			return fmt.Errorf("%s was given %s, which %s has", pod, ip, other)
		}
		c.lives[ip] = pod
		if stays {
			c.want[ip.String()] = true
		}
	}
	return nil
}

// going notes that the pod is going.
func (c *churn) going(ips []netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ip := range ips {
		delete(c.lives, ip)
	}
}

// Pods come and go, by real ADDs and DELs, in the blocks of etcd that the reaper
// cleans over and over. Every ADD and DEL succeeds, no two pods have one address,
// the pods that stay have what they got, and nothing else is left in the end
// (promises 1 and 9). The storm does the same with the data in the API server.
func TestEveryLifeBesideTheReaper(t *testing.T) {
	workers, lives := 3, 6
	if testing.Short() {
		workers, lives = 2, 4
	}
	s := newFixture(t, calico.EtcdT(t))
	c := &churn{fixture: s, lives: map[netip.Addr]string{}, want: map[string]bool{}}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range lives {
				if err := c.life(fmt.Sprintf("pod-%d-%d", w, i), (w+i)%fates); err != nil {
					s.Error(err)
				}
			}
		})
	}
	go func() { wg.Wait(); close(done) }()
	defer wg.Wait()
	runs, released := 0, 0
	for over := false; !over; runs++ {
		select {
		case <-done:
			over = true
		default:
		}
		released += s.mustReap(reap.ExitDone, releaseNow).Summary.Released
	}
	if released == 0 {
		s.Error("nothing was released: the reaper was not at work")
	}
	s.Logf("%d runs released %d", runs, released)
	s.later(releaseNow)
	s.wantWhole(c.want)
}

// later is a run at a time when all that a ledger remembers is due.
func (s *fixture) later(policy string) *reap.Report {
	s.Helper()
	report, err := s.engine(engine.After(time.Hour)).Run(s.Context(), policy)
	s.must(err)
	return report
}
