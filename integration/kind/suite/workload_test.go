package suite_test

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// apply creates what a file of testdata says. The API server refuses a pod in a new namespace until
// that has its account, so what it refuses is tried again.
func (c *cluster) apply(file string) {
	c.Helper()
	c.eventually(time.Minute, func(context.Context) (string, error) {
		_, err := c.tryKubectl("apply", "-f", filepath.Join("testdata", file))
		return "", err
	})
}

// settled waits until so many pods of a namespace are there, and all of them are
// ready. Those that have succeeded do not count.
func (c *cluster) settled(namespace string, want int, within time.Duration) {
	c.Helper()
	c.eventually(within, func(ctx context.Context) (string, error) {
		pods, err := c.pods(ctx, namespace)
		if err != nil {
			return "", err
		}
		pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
		var not []string
		for _, p := range pods {
			if !ready(p) {
				not = append(not, p.Name)
			}
		}
		if len(pods) != want || len(not) > 0 {
			return fmt.Sprintf("%d pods in %s, want %d; not ready: %s", len(pods), namespace, want, strings.Join(not, ", ")), nil
		}
		return "", nil
	})
}

// ready reports whether a pod is, and stays.
func ready(p corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// hanging returns the pods of a namespace that got no address.
func (c *cluster) hanging(ctx context.Context, namespace, prefix string) ([]string, error) {
	pods, err := c.pods(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range pods {
		waits := slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.State.Waiting != nil && s.State.Waiting.Reason == "ContainerCreating"
		})
		if waits && strings.HasPrefix(p.Name, prefix) {
			names = append(names, p.Name)
		}
	}
	return names, nil
}

// deleteByForce deletes all pods of a namespace from the API, without their
// nodes, as people do with pods that hang in Terminating.
func (c *cluster) deleteByForce(namespace string) {
	c.Helper()
	c.kubectl("-n", namespace, "delete", "pods", "--all", "--force", "--grace-period=0")
}

// of returns what the stores hold for the pods of a namespace.
func (c *cluster) of(namespace string) []allocation {
	c.Helper()
	all, err := c.allocations(c.Context())
	c.must(err)
	return slices.DeleteFunc(all, func(a allocation) bool { return !strings.HasPrefix(a.pod, namespace+"/") })
}

// inUse returns those of them that the pods show.
func (c *cluster) inUse(namespace string) []allocation {
	c.Helper()
	pods, err := c.pods(c.Context(), namespace)
	c.must(err)
	var all []netip.Addr
	for _, p := range pods {
		all = append(all, shown(p)...)
	}
	return slices.DeleteFunc(c.of(namespace), func(a allocation) bool { return !slices.Contains(all, a.ip) })
}

// count counts the allocations of a store.
func count(all []allocation, store string) int {
	n := 0
	for _, a := range all {
		if a.store == store {
			n++
		}
	}
	return n
}

// still returns those of the allocations that the stores hold, exactly as they were.
func (c *cluster) still(before []allocation) []allocation {
	c.Helper()
	now, err := c.allocations(c.Context())
	c.must(err)
	return slices.DeleteFunc(slices.Clone(before), func(a allocation) bool { return !slices.Contains(now, a) })
}
