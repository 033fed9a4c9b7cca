package suite_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How many pods the files of testdata make.
const (
	healthyPods = 6 + 2 + 3 // a Deployment, a StatefulSet, an agent a node
	outagePods  = 4 + 5 + 1
	cutoffPods  = 2
)

// churn is how long pods come and go while the reaper runs each minute.
const churn = 150 * time.Second

// The reaper on a real cluster: real kubelets and sandboxes, real plugins, nodes that
// really die. The steps build on each other; a guard watches all of them.
func TestClusterThroughItsTroubles(t *testing.T) {
	c := connect(t)
	c.install("plan", "job")
	c.apply("healthy.yaml")
	c.settled("healthy", healthyPods, 3*time.Minute)
	c.kubectl("-n", "healthy", "wait", "--for=condition=complete", "--timeout=2m", "job/batch")
	c.settled("crashing", 1, time.Minute)
	g := c.watch()
	defer g.stop()

	c.step("the shipped roles suffice under Pod Security restricted, and a healthy cluster needs no releases", func(c *cluster) {
		c.wantRestricted()
		if word := c.job("ip-reaper", "plan"); !word.DryRun || word.Summary.Planned+word.Summary.Suspected+word.Summary.Released > 0 {
			c.Errorf("a dry run on a healthy cluster: %+v", word)
		}
	})
	var loop crashLoop
	c.step("sandboxes that die without a DEL leak addresses of a pod that lives", func(c *cluster) {
		loop = c.crash()
		if got := count(loop.leaked, calico); got != crashes {
			c.Errorf("%d addresses of dead sandboxes in Calico, want %d: %v", got, crashes, loop.leaked)
		}
		if count(loop.now, calico) != 1 || count(loop.now, whereabouts) != 1 {
			c.Errorf("the living sandbox has %v, want an address of each store", loop.now)
		}
	})
	c.step("every pod keeps its addresses while the reaper runs under churn", churnStep)
	c.step("the addresses of a dead worker are freed by a one-off job, and the pods that hung start", outageStep)
	c.step("the worker that comes back harms nobody", func(c *cluster) { c.comeBack(g) })
	c.step("a worker that is cut off keeps its addresses until it is fenced", cutOffStep)
	c.step("the addresses of dead sandboxes are released while their pod lives", func(c *cluster) {
		c.job("ip-reaper-outage-now", "sandboxes")
		if still := c.still(loop.leaked); len(still) > 0 {
			c.Errorf("dead sandboxes still have %v", still)
		}
		if still := c.still(loop.now); len(still) != len(loop.now) {
			c.Errorf("of the living sandbox's %v there are %v", loop.now, still)
		}
		pod, err := c.kube.CoreV1().Pods("crashing").Get(c.Context(), "crashing", metav1.GetOptions{})
		c.must(err)
		if pod.UID != loop.uid || !ready(*pod) {
			c.Errorf("the pod did not live through it: %+v", pod.Status)
		}
	})
}

// wantRestricted checks that the namespace of the reaper admits nothing less, so that
// the pods that ran in it were.
func (c *cluster) wantRestricted() {
	c.Helper()
	ns, err := c.kube.CoreV1().Namespaces().Get(c.Context(), home, metav1.GetOptions{})
	c.must(err)
	if got := ns.Labels["pod-security.kubernetes.io/enforce"]; got != "restricted" {
		c.Errorf("the namespace enforces %q", got)
	}
	loose := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "loose"}, Spec: corev1.PodSpec{
		HostNetwork: true, Containers: []corev1.Container{{Name: "main", Image: "none"}},
	}}
	_, err = c.kube.CoreV1().Pods(home).Create(c.Context(), loose, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		c.Error("a pod with the network of its host is admitted")
	}
}

// churnStep has the reaper run each minute without any grace, and pods come and go.
func churnStep(c *cluster) {
	before, err := c.runs(c.Context())
	c.must(err)
	c.install("release")
	for end, n := time.Now().Add(churn), 0; time.Now().Before(end); n++ {
		c.kubectl("-n", "healthy", "rollout", "restart", "deployment/web", "statefulset/db", "daemonset/agent")
		c.kubectl("-n", "healthy", "scale", "deployment/web", fmt.Sprintf("--replicas=%d", 4+n%5))
		c.kubectl("-n", "healthy", "rollout", "status", "deployment/web", "--timeout=2m")
		c.kubectl("-n", "healthy", "rollout", "status", "statefulset/db", "--timeout=2m")
	}
	c.kubectl("-n", "healthy", "scale", "deployment/web", "--replicas=6")
	c.settled("healthy", healthyPods, 2*time.Minute)
	c.eventually(5*time.Minute, func(ctx context.Context) (string, error) {
		n := 0
		all, err := c.runs(ctx)
		for name, job := range all {
			if _, old := before[name]; !old && job.Status.Succeeded > 0 {
				n++
			}
		}
		if n < 2 { // the last three Jobs are kept
			return fmt.Sprintf("%d runs of the CronJob succeeded, want 2", n), err
		}
		return "", err
	})
	c.install("plan") // and not another release by itself
	c.eventually(5*time.Minute, func(ctx context.Context) (string, error) {
		all, err := c.runs(ctx)
		for name, job := range all {
			if !ended(job) {
				return "job " + name + " may have the lock", err
			}
		}
		return "", err
	})
}

// runs are the Jobs that are made from the CronJob, by name.
func (c *cluster) runs(ctx context.Context) (map[string]batchv1.Job, error) {
	list, err := c.kube.BatchV1().Jobs(home).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := map[string]batchv1.Job{}
	for _, job := range list.Items {
		if len(job.OwnerReferences) > 0 && job.OwnerReferences[0].Name == "ip-reaper" {
			all[job.Name] = job
		}
	}
	return all, nil
}

// outageStep kills a worker with all tenants of two small pools on it.
func outageStep(c *cluster) {
	c.apply("outage.yaml")
	c.settled("outage", outagePods, 2*time.Minute)
	before := c.of("outage")
	c.job("ip-reaper", "before") // a dry run, which remembers where the pods of Whereabouts' addresses are
	c.kill(workerA)
	c.deleteByForce("outage")
	for prefix, words := range map[string]string{"whereabouts-": "Could not allocate IP in range: ", "calico-": "Assigned 0 out of 1 requested IPv4 addresses"} {
		c.eventually(2*time.Minute, func(ctx context.Context) (string, error) {
			names, err := c.hanging(ctx, "outage", prefix)
			if err == nil && len(names) < 4 {
				return fmt.Sprintf("of the pods %s… %d hang, want 4", prefix, len(names)), nil
			}
			return "", err
		})
		c.eventually(3*time.Minute, func(ctx context.Context) (string, error) {
			names, err := c.hanging(ctx, "outage", prefix)
			if err != nil || len(names) == 0 {
				return "no pod hangs any more", err
			}
			return c.quotes("outage/"+names[0], words)
		})
	}

	// The StatefulSet's pod comes back under its name, and may have adopted its entry.
	others := slices.DeleteFunc(slices.Clone(before), func(a allocation) bool { return a.pod == "outage/db-0" })
	c.job("ip-reaper-outage-now", "too-soon")
	if still := c.still(others); len(still) != len(others) {
		c.Errorf("before the worker is fenced, of %v there are %v", others, still)
	}
	c.fence(workerA)
	plan := c.job("ip-reaper-outage-plan", "look")
	if !plan.DryRun || plan.Summary.Planned < 9 {
		c.Errorf("the plan: %+v", plan.Summary)
	}
	fix := c.job("ip-reaper-outage-now", "fix")
	if fix.Summary.Released < 9 || fix.Summary.Failed > 0 {
		c.Errorf("the fix: %+v", fix.Summary)
	}
	c.settled("outage", outagePods, 3*time.Minute)
	if still := c.still(others); len(still) > 0 {
		c.Errorf("sandboxes of the worker that died still have %v", still)
	}
	c.wantSameName(before)
}

// quotes has explain quote the words of the plugin, from the event of the kubelet of a pod that hangs. It returns what
// it says instead.
func (c *cluster) quotes(pod, words string) (string, error) {
	answer, err := c.command("", "docker", "run", "--rm", "--network=host", "--user=0", "--volume="+c.kubeconfig+":/kubeconfig:ro", "ip-reaper:e2e",
		"explain", pod, "--kubeconfig=/kubeconfig")
	for line := range strings.Lines(answer) {
		if strings.HasPrefix(line, "  event ") && strings.Contains(line, "FailedCreatePodSandBox: ") && strings.Contains(line, words) {
			return "", nil
		}
	}
	return fmt.Sprintf("explain of %s does not quote %q:\n%s", pod, words, answer), err
}

// wantSameName checks that the StatefulSet's pod came back under its name, and with
// the address that Whereabouts had for it.
func (c *cluster) wantSameName(before []allocation) {
	c.Helper()
	address := func(all []allocation) (ip netip.Addr) {
		for _, a := range all {
			if a.pod == "outage/db-0" && a.store == whereabouts {
				ip = a.ip
			}
		}
		return ip
	}
	if was, is := address(before), address(c.of("outage")); !was.IsValid() || is != was {
		c.Errorf("outage/db-0 has the address %s, and had %s", is, was)
	}
}

// comeBack starts the worker again. Its kubelet finds sandboxes whose pods are gone,
// and calls DEL for them; the addresses are other pods' by now.
func (c *cluster) comeBack(g *guard) {
	c.Helper()
	g.excuse(workerA, true)
	tenants := c.inUse("outage")
	c.start(workerA)
	c.unfence(workerA)
	c.eventually(3*time.Minute, func(context.Context) (string, error) {
		left, err := c.command("", "docker", "exec", workerA, "crictl", "pods", "--namespace", "outage", "--quiet")
		if left != "" {
			return "sandboxes of before: " + left, err
		}
		return "", err
	})
	c.settled("healthy", healthyPods, 2*time.Minute)
	if still := c.still(tenants); len(still) != len(tenants) {
		c.Errorf("late DELs took addresses: of %v there are %v", tenants, still)
	}
	c.job("ip-reaper-outage-now", "after")
	if still := c.still(tenants); len(still) != len(tenants) {
		c.Errorf("of %v there are %v", tenants, still)
	}
	g.excuse(workerA, false)
	c.kubectl("delete", "namespace", "outage")
}

// cutOffStep takes the network from a worker whose pods go on running.
func cutOffStep(c *cluster) {
	c.apply("cutoff.yaml")
	c.settled("cutoff", cutoffPods, 2*time.Minute)
	before := c.of("cutoff")
	if want := 3 * cutoffPods; len(before) != want {
		c.Fatalf("%d addresses, want %d: %v", len(before), want, before)
	}
	c.job("ip-reaper", "remember")
	c.cutOff(workerB)
	c.deleteByForce("cutoff")
	c.settled("cutoff", cutoffPods, 2*time.Minute) // on the other worker
	if word := c.job("ip-reaper-outage-now", "cut-off"); word.Summary.Held < len(before) {
		c.Errorf("while the worker is cut off: %+v", word.Summary)
	}
	if still := c.still(before); len(still) != len(before) {
		c.Errorf("of the addresses %v of sandboxes that run there are %v", before, still)
	}
	if got := c.docker("exec", workerB, "crictl", "pods", "--namespace", "cutoff", "--state", "ready", "--quiet"); got == "" {
		c.Error("no sandbox runs on the worker that is cut off")
	}
	c.fence(workerB)
	c.job("ip-reaper-outage-now", "fenced")
	if still := c.still(before); len(still) > 0 {
		c.Errorf("once the worker is fenced, there still are %v", still)
	}
	c.reconnect(workerB)
	c.unfence(workerB)
	c.settled("cutoff", cutoffPods, 2*time.Minute)
	c.settled("healthy", healthyPods, 2*time.Minute)
	c.settled("crashing", 1, 2*time.Minute)
}
