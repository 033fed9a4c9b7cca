package suite_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The range of the worker's pods, and a small one in its place.
const (
	ownRange   = "10.244.2.0/24"
	smallRange = "10.32.0.0/29"
	smallRoom  = 8
)

// Where every address of the primary network has leaked, a pod that is to free them gets none. Those of
// the outage Jobs need none, and the one that hung starts.
func TestPrimaryNetworkThatIsDry(t *testing.T) {
	c := connect(t)
	c.install("plan", "job")
	g := c.watch()
	defer g.stop()
	defer c.primaryEnds()
	c.apply("primary.yaml")
	c.inside(workerB, "pool.sh", smallRange)
	c.inside(workerB, "leak.sh", "dry", fmt.Sprint(smallRoom))
	leaked := c.of("dry")
	if len(leaked) != smallRoom {
		t.Fatalf("%d addresses have leaked, want %d: %v", len(leaked), smallRoom, leaked)
	}
	c.kubectl("cordon", workerA, controlPlane) // no other node is left

	c.kubectl("-n", home, "create", "job", "--from=cronjob/ip-reaper", "dry-plain")
	var plain []string
	c.eventually(2*time.Minute, func(ctx context.Context) (missing string, err error) {
		if plain, err = c.hanging(ctx, home, "dry-plain-"); err != nil || len(plain) == 0 {
			return "no plain Job hangs", err
		}
		return c.quotes(home+"/"+plain[0], "Assigned 0 out of 1 requested IPv4 addresses")
	})
	if fix := c.job("ip-reaper-outage-now", "dry-fix"); fix.Summary.Released < smallRoom || fix.Summary.Failed > 0 {
		t.Errorf("the outage Job: %+v", fix.Summary)
	}
	if still := c.still(leaked); len(still) > 0 {
		t.Errorf("of what leaked there still are %v", still)
	}
	c.eventually(3*time.Minute, func(ctx context.Context) (string, error) {
		job, err := c.kube.BatchV1().Jobs(home).Get(ctx, "dry-plain", metav1.GetOptions{})
		if err != nil || job.Status.Succeeded == 0 {
			return "the plain Job has not succeeded", err
		}
		return "", nil
	})
	pods, err := c.pods(t.Context(), home)
	c.must(err)
	for _, p := range pods {
		if slices.Contains(plain, p.Name) && p.Spec.NodeName != workerB {
			t.Errorf("the pod that hung ran on %s", p.Spec.NodeName)
		}
	}
}

// primaryEnds gives the worker its range back.
func (c *cluster) primaryEnds() {
	c.Helper()
	c.kubectl("uncordon", workerA, controlPlane)
	c.inside(workerB, "pool.sh", ownRange)
	for namespace, job := range map[string]string{home: "dry-plain", outageHome: "dry-fix"} {
		c.kubectl("-n", namespace, "delete", "job", job, "--ignore-not-found", "--cascade=foreground")
	}
	c.kubectl("delete", "ippools.crd.projectcalico.org", "primary-small", "--ignore-not-found")
	c.kubectl("delete", "ipamblocks.crd.projectcalico.org", "10-32-0-0-29", "--ignore-not-found")
	c.kubectl("delete", "blockaffinities.crd.projectcalico.org", workerB+"-10-32-0-0-29", "--ignore-not-found")
}
