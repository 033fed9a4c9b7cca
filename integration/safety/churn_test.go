package safety_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// neighbours is a network whose range overlaps that of network.
var neighbours = plugin.Network{Name: "other", Range: "10.0.0.0/8", RangeStart: "10.1.0.1", RangeEnd: "10.1.0.254"}

// A town is where pods come and go at the same time, each with real ADDs and
// DELs, and what they ought to find in the store.
type town struct {
	*scene
	mu    sync.Mutex
	lives map[string]string // the pod by address
	want  store             // of those that stay
}

// moveIn notes that the pod was given the address.
func (c *town) moveIn(n plugin.Network, pod, sandbox, ip string, stays bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.lives[ip]; other != "" {
		return fmt.Errorf("%s was given %s, which %s has", pod, ip, other)
	}
	c.lives[ip] = pod
	if stays {
		c.want[poolName(n.Range)+" "+ip] = c.ref(pod) + " " + sandbox
		c.want[ip] = c.ref(pod)
	}
	return nil
}

// moveOut notes that the pod is going.
func (c *town) moveOut(ip string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lives, ip)
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
func (c *town) life(t *testing.T, n plugin.Network, pod string, fate int) error {
	sandbox := "sandbox-" + pod
	who := plugin.Pod{Namespace: c.namespace, Name: pod}
	c.pod(t, pod)
	ips, err := c.plugin.Add(t.Context(), n, who, sandbox, "net1")
	if err != nil {
		return err
	}
	ip := ips[0].String()
	if err := c.moveIn(n, pod, sandbox, ip, fate == stays); err != nil {
		return err
	}
	c.running(t, pod, ip)
	if fate == stays {
		return nil
	}
	c.moveOut(ip)
	if fate == leaves {
		err = c.leave(t, n, who, sandbox)
	}
	c.dies(t, pod)
	if fate == lingers {
		err = c.leave(t, n, who, sandbox)
	}
	return err
}

// leave runs a DEL, and looks at what became of it: the plugin itself reports
// success whatever happened.
func (c *town) leave(t *testing.T, n plugin.Network, who plugin.Pod, sandbox string) error {
	if err := c.plugin.Del(t.Context(), n, who, sandbox, "net1"); err != nil {
		return err
	}
	for key, owner := range c.store(t) {
		if strings.HasSuffix(owner, " "+sandbox) {
			return fmt.Errorf("DEL of %s left %s", sandbox, key)
		}
	}
	return nil
}

// Pods come and go, by real ADDs and DELs, in the pool that the reaper cleans
// over and over and in one that overlaps it. Nobody disturbs anybody: every
// ADD and DEL succeeds, no two pods have one address, those who stay have what
// they got, and at the end one run leaves nothing else (promises 1 and 9).
func TestReaperAndPluginsDoNotDisturbEachOther(t *testing.T) {
	const (
		workers = 4
		lives   = 10
		policy  = releaseNow + "limits: {maxFraction: 1}\n"
	)
	c := &town{scene: newScene(t), lives: map[string]string{}, want: store{}}
	c.pod(t, "bystander")
	var wg sync.WaitGroup
	for w := range workers {
		n := network
		if w == 0 {
			n = neighbours
		}
		wg.Go(func() {
			for i := range lives {
				if err := c.life(t, n, fmt.Sprintf("pod-%d-%d", w, i), (w+i)%fates); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	defer wg.Wait()
	runs, released := 0, 0
	for over := false; !over; runs++ {
		select {
		case <-done:
			over = true
		default:
		}
		released += c.run(t, reap.ExitDone, policy).Report.Summary.Released
	}
	c.checkStore(t, c.want)
	if released == 0 {
		t.Error("nothing was released: the reaper was not at work")
	}
	t.Logf("%d runs released %d", runs, released)
}
