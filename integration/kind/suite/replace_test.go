package suite_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A run whose node dies blocks no later one: its pod stays until the node is back, and its lock lapses.
func TestNodeOfARunDies(t *testing.T) {
	c := connect(t)
	defer c.install("plan")
	c.inside(controlPlane, "leak.sh", "waited-for", "1")
	leaked := c.of("waited-for")
	c.install("waiting")
	var run corev1.Pod
	c.eventually(3*time.Minute, func(ctx context.Context) (missing string, err error) {
		run, missing, err = c.running(ctx)
		return missing, err
	})
	c.install("suspended") // so that no later run replaces it while its node is healthy
	c.eventually(time.Minute, func(ctx context.Context) (missing string, err error) {
		run, missing, err = c.running(ctx)
		return missing, err
	})
	before, err := c.runs(t.Context())
	c.must(err)
	c.kill(run.Spec.NodeName)

	c.install("release")
	c.eventually(3*time.Minute, func(ctx context.Context) (string, error) {
		all, err := c.runs(ctx)
		for name, job := range all {
			if _, old := before[name]; !old && job.Status.Succeeded > 0 {
				return "", nil
			}
		}
		return fmt.Sprintf("no run after that of %s has succeeded", run.Name), err
	})
	stays, err := c.kube.CoreV1().Pods(home).Get(t.Context(), run.Name, metav1.GetOptions{})
	c.must(err)
	if stays.UID != run.UID || stays.Status.Phase != corev1.PodRunning || stays.DeletionTimestamp == nil {
		t.Errorf("the pod of the run that died: %+v, want that it is told to end, and stays", stays.Status)
	}
	c.start(run.Spec.NodeName)
	c.eventually(2*time.Minute, func(ctx context.Context) (string, error) {
		pod, err := c.kube.CoreV1().Pods(home).Get(ctx, run.Name, metav1.GetOptions{})
		if err == nil && pod.UID == run.UID {
			return "the pod of the run that died is there", nil
		}
		return "", nil
	})
	// A run waits until a node has been ready for some minutes: its kubelet may still end the pod.
	c.eventually(10*time.Minute, func(context.Context) (string, error) {
		if still := c.still(leaked); len(still) > 0 {
			return fmt.Sprintf("the later runs did not release %v", still), nil
		}
		return "", nil
	})
}

// running returns the pod of the run that is in progress, once it has the lock.
func (c *cluster) running(ctx context.Context) (run corev1.Pod, missing string, err error) {
	lease, err := c.kube.CoordinationV1().Leases(home).Get(ctx, "ip-reaper", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return run, "no run has the lock", err
	}
	pods, err := c.pods(ctx, home)
	var found []corev1.Pod
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			found = append(found, p)
		}
	}
	if err != nil || len(found) != 1 {
		return run, fmt.Sprintf("%d runs are in progress, want 1", len(found)), err
	}
	return found[0], "", nil
}
