package follow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// The crowd takes some seconds to create, so that all tests share it.
func TestFollowedPods(t *testing.T) {
	c := newCrowd(t)
	for name, test := range map[string]func(c *crowd){
		"a pod that was created right before is seen":      seesNewPods,
		"a look comes soon":                                comesSoon,
		"a list that takes longer than a warrant is valid": needsNoList,
		"a watch that hangs gives no look":                 hangs,
		"a watch that is forbidden":                        isForbidden,
		"a version that has expired":                       expires,
	} {
		t.Run(name, func(t *testing.T) { test(c.in(t)) })
	}
}

// seesNewPods proves promises 1 and 4 with Renew, which never shares a look.
func seesNewPods(c *crowd) {
	l := c.plan()
	w := l.confirmed()
	for i := range 5 {
		name := fmt.Sprint("new-", i)
		_, err := c.CreatePod(c.Context(), c.namespace, name, cluster.PodIPs(sample.String()))
		c.must(err)
		if _, err := w.Renew(c.Context()); !errors.Is(err, reaper.ErrReturned) {
			c.Errorf("pod %s has the address: %v, want ErrReturned", name, err)
		}
		c.must(c.DeletePod(c.Context(), c.namespace, name))
		if _, err := w.Renew(c.Context()); err != nil {
			c.Errorf("pod %s is gone: %v", name, err)
		}
	}
	if n := l.fullLists(); n > 0 {
		c.Errorf("%d lists of all pods, want none", n)
	}
}

// comesSoon proves that a look is not given up for want of bookmarks: in a cluster where
// nothing is written, where only other objects are, and where pods are.
func comesSoon(c *crowd) {
	client := c.client(c.Config)
	annotate := func(ctx context.Context, i int) error {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"}}}`, i)
		_, err := client.CoreV1().Pods(c.namespace).Patch(ctx, "crowd-0000", "application/merge-patch+json", patch, metav1.PatchOptions{})
		return err
	}
	other := func(ctx context.Context, _ int) error {
		_, err := client.CoreV1().ConfigMaps(c.namespace).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "write-"}}, metav1.CreateOptions{})
		return err
	}
	for name, write := range map[string]func(context.Context, int) error{
		"nothing is written": nil, "other objects are written": other, "pods are written": annotate,
	} {
		c.Run(name, func(t *testing.T) {
			c := c.in(t)
			l := c.plan()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := 0; write != nil && ctx.Err() == nil && write(ctx, i) == nil; i++ {
					time.Sleep(20 * time.Millisecond)
				}
			}()
			defer func() { cancel(); <-done }()
			for range 8 {
				l.confirmer.Forget()
				began := time.Now()
				l.confirmed()
				t.Logf("a look after %v", time.Since(began).Round(time.Millisecond))
			}
			if n := l.fullLists(); n > 0 {
				t.Errorf("%d lists of all pods, want none", n)
			}
		})
	}
}

// needsNoList proves promise 4 where no list of all pods can be fresh.
func needsNoList(c *crowd) {
	l := c.plan()
	c.proxy.Before(pages, func(ctx context.Context, _ proxy.Request) proxy.Action {
		select {
		case <-time.After(reaper.Freshness):
		case <-ctx.Done():
		}
		return proxy.Pass()
	})
	for range 3 {
		l.confirmed()
		time.Sleep(reaper.Freshness / 2)
	}
}

// pages selects the lists of all pods.
func pages(r proxy.Request) bool { return r.String() == "list pods" && r.Namespace == "" }

// hangs proves promises 1 and 2: what the watch does not tell is not believed to be gone.
func hangs(c *crowd) {
	l := c.plan()
	gate := proxy.NewGate()
	c.proxy.Before(proxy.On("watch pods"), gate.Hook)
	c.show("hidden")
	if _, err := l.confirm(); !errors.Is(err, reaper.ErrReturned) {
		c.Errorf("%v, want ErrReturned, by a list", err)
	}
	if n := l.fullLists(); n == 0 {
		c.Error("no list of all pods")
	}
	c.proxy.Before(pages, proxy.Always(proxy.InternalError()))
	l.confirmer.Forget()
	if _, err := l.confirm(); !errors.Is(err, reaper.ErrAgain) {
		c.Errorf("without a list: %v, want ErrAgain", err)
	}
	gate.Open()
	l.confirmer.Forget()
	deadline := time.Now().Add(30 * time.Second)
	for {
		_, err := l.confirm()
		if errors.Is(err, reaper.ErrReturned) {
			return
		}
		if !errors.Is(err, reaper.ErrAgain) || time.Now().After(deadline) {
			c.Fatalf("when the watch goes on: %v, want ErrReturned", err)
		}
	}
}

// isForbidden proves that a role without the right has what it had before.
func isForbidden(c *crowd) {
	l := c.plan()
	c.proxy.Before(proxy.On("watch pods"), proxy.Always(proxy.Forbidden()))
	l.confirmed()
	if n := l.fullLists(); n == 0 {
		c.Error("no list of all pods")
	}
	c.proxy.Before(pages, proxy.Always(proxy.InternalError()))
	l.confirmer.Forget()
	_, err := l.confirm()
	if err == nil || !strings.Contains(err.Error(), "they are not followed, because: watch pods:") {
		c.Errorf("%v, want the reason", err)
	}
}

// expires proves promise 1: the pods are listed again, and no change is lost.
func expires(c *crowd) {
	l := c.plan()
	c.proxy.Before(proxy.First(1, proxy.On("watch pods")),
		proxy.Always(proxy.Answer(410, metav1.StatusReasonExpired, "too old resource version")))
	c.show("meanwhile")
	if _, err := l.confirm(); !errors.Is(err, reaper.ErrReturned) {
		c.Errorf("%v, want ErrReturned", err)
	}
}
