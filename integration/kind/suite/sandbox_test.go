package suite_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// crashes is how often the sandbox of the pod crashes.
const crashes = 3

// A crashLoop is a pod whose sandboxes died without a CNI DEL, and what they left.
type crashLoop struct {
	uid    types.UID
	leaked []allocation // of sandboxes that are dead
	now    []allocation // of the sandbox that lives
}

// crash has the sandbox of the pod crashing/crashing die several times. The kubelet
// makes a new one each time, and Calico gives each an address of its own; Whereabouts
// gives the pod its old one.
func (c *cluster) crash() crashLoop {
	c.Helper()
	pod, err := c.kube.CoreV1().Pods("crashing").Get(c.Context(), "crashing", metav1.GetOptions{})
	c.must(err)
	var dead []string
	for range crashes {
		id := strings.TrimSpace(c.inside(pod.Spec.NodeName, "kill-sandbox.sh", pod.Namespace, pod.Name))
		c.Logf("sandbox %s died", id)
		dead = append(dead, id)
		c.eventually(2*time.Minute, func(ctx context.Context) (string, error) {
			p, err := c.kube.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			all, err := c.allocations(ctx)
			if err != nil {
				return "", err
			}
			for _, ip := range shown(*p) {
				if !slices.ContainsFunc(all, func(a allocation) bool { return a.ip == ip && !slices.Contains(dead, a.sandbox) }) {
					return fmt.Sprintf("the pod still shows %s, of a sandbox that is dead", ip), nil
				}
			}
			if !ready(*p) {
				return "the pod is not ready again", nil
			}
			return "", nil
		})
	}
	loop := crashLoop{uid: pod.UID}
	for _, a := range c.of("crashing") {
		if slices.Contains(dead, a.sandbox) {
			loop.leaked = append(loop.leaked, a)
		} else {
			loop.now = append(loop.now, a)
		}
	}
	return loop
}
