package suite_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A hostNetwork is the network of a node's pods, of ptp and host-local.
type hostNetwork struct {
	name    string
	dataDir string // empty is the plugin's default
	subnet  string
}

// folder is where the leases are.
func (n hostNetwork) folder() string {
	if n.dataDir == "" {
		return "/var/lib/cni/networks/" + n.name
	}
	return n.dataDir + "/" + n.name
}

// A lease is a file of host-local's.
type lease struct {
	ip      netip.Addr
	sandbox string
	mode    string
	mtime   int64 // in nanoseconds since 1970
}

func (l lease) String() string { return fmt.Sprintf("%s of %.8s", l.ip, l.sandbox) }

// same reports whether it is the lease of the same address and sandbox, of any age.
func (l lease) same(o lease) bool { return l.ip == o.ip && l.sandbox == o.sandbox }

// connectPods has the pods that start on the node get their addresses from a network. A
// plugin that is not empty is called after the others.
func (c *cluster) connectPods(node string, n hostNetwork, plugin string) {
	c.Helper()
	c.inside(node, "host-local.sh", n.name, n.dataDir, n.subnet, plugin)
	for _, name := range []string{n.name, removedPlugin, agentPlugin} {
		c.configured(node, name, name == n.name || name == plugin)
	}
}

// configured waits until the configuration of a node's containerd names a network or a
// plugin, or until it does not. containerd watches the folder, and says what it has.
func (c *cluster) configured(node, name string, want bool) {
	c.Helper()
	c.eventually(30*time.Second, func(context.Context) (string, error) {
		info, err := c.command("", "docker", "exec", node, "crictl", "info")
		if err != nil {
			return "", err
		}
		if strings.Contains(info, name) != want {
			return fmt.Sprintf("containerd has %s: %t", name, !want), nil
		}
		return "", nil
	})
}

// leases reads the leases of a network, in the order of their addresses, without a line of
// the program that is tested.
func (c *cluster) leases(node string, n hostNetwork) []lease {
	c.Helper()
	var all []lease
	for line := range strings.Lines(c.inside(node, "leases.sh", n.folder())) {
		words := strings.Fields(line)
		if len(words) != 4 {
			c.Fatalf("a lease of %s: %q", n.name, line)
		}
		ip, err := netip.ParseAddr(words[0])
		c.must(err)
		mtime, err := strconv.ParseInt(words[3], 10, 64)
		c.must(err)
		all = append(all, lease{ip, words[1], words[2], mtime})
	}
	slices.SortFunc(all, func(a, b lease) int { return a.ip.Compare(b.ip) })
	return all
}

// sandboxes lists the sandboxes of a node in any state, as crictl does.
func (c *cluster) sandboxes(node string) []string {
	c.Helper()
	return strings.Fields(c.docker("exec", node, "crictl", "pods", "--no-trunc", "--quiet"))
}

// leaked returns the leases of a network whose sandbox does not exist.
func (c *cluster) leaked(node string, n hostNetwork) []lease {
	c.Helper()
	held := c.leases(node, n) // before the sandboxes: what is set up meanwhile is not leaked
	known := c.sandboxes(node)
	return slices.DeleteFunc(held, func(l lease) bool { return slices.Contains(known, l.sandbox) })
}

// without returns the leases that are in one list and not in the other.
func without(all, other []lease) []lease {
	return slices.DeleteFunc(slices.Clone(all), func(l lease) bool { return slices.Contains(other, l) })
}

// age makes leases older than any minimal age. It stands for the 10 minutes that the suite
// does not wait: ip-reaper takes the age of a lease from its file's time, and nothing else
// on a node remembers it.
func (c *cluster) age(node string, n hostNetwork, leases []lease) {
	c.Helper()
	args := []string{"20", n.folder()}
	for _, l := range leases {
		args = append(args, l.ip.String())
	}
	c.inside(node, "older.sh", args...)
}

// scale sets how many pods a Deployment of the namespace host-local has.
func (c *cluster) scale(deployment string, replicas int) {
	c.Helper()
	_, err := c.kube.AppsV1().Deployments(hostLocal).UpdateScale(c.Context(), deployment, &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: hostLocal, Name: deployment},
		Spec:       autoscalingv1.ScaleSpec{Replicas: int32(replicas)},
	}, metav1.UpdateOptions{})
	c.must(err)
}

// started waits until all pods of a Deployment run.
func (c *cluster) started(deployment string, within time.Duration) {
	c.Helper()
	c.eventually(within, func(ctx context.Context) (string, error) {
		d, err := c.kube.AppsV1().Deployments(hostLocal).Get(ctx, deployment, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if !complete(d) {
			return fmt.Sprintf("%d of %d pods of %s are ready", d.Status.ReadyReplicas, *d.Spec.Replicas, deployment), nil
		}
		return "", nil
	})
}

func complete(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration >= d.Generation && d.Status.Replicas == *d.Spec.Replicas &&
		d.Status.ReadyReplicas == *d.Spec.Replicas
}

// podsOf lists the pods of a Deployment that are not being deleted.
func (c *cluster) podsOf(deployment string) []corev1.Pod {
	c.Helper()
	list, err := c.kube.CoreV1().Pods(hostLocal).List(c.Context(), metav1.ListOptions{LabelSelector: "app=" + deployment})
	c.must(err)
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// wantAnswers asks the pods twelve times, each at its own address, from another node. Each
// answer has to come, and from the pod itself.
func (c *cluster) wantAnswers(pods []corev1.Pod) {
	c.Helper()
	const asked = 12
	answers := 0
	for i := range asked {
		pod := pods[i%len(pods)]
		answer, err := c.command("", "docker", "exec", workerB, "curl", "--silent", "--show-error", "--max-time", "5", "http://"+pod.Status.PodIP+":8080/")
		if err == nil && strings.TrimSpace(answer) == pod.Name {
			answers++
			continue
		}
		c.Errorf("pod %s at %s: %q, %v", pod.Name, pod.Status.PodIP, answer, err)
	}
	c.Logf("%d of %d answers of %d pods", answers, asked, len(pods))
}

// leasesOf returns the leases of the addresses that pods show, which have to be there.
func (c *cluster) leasesOf(node string, n hostNetwork, pods []corev1.Pod) []lease {
	c.Helper()
	held := c.leases(node, n)
	var theirs []lease
	for _, pod := range pods {
		i := slices.IndexFunc(held, func(l lease) bool { return l.ip.String() == pod.Status.PodIP })
		if i < 0 {
			c.Fatalf("pod %s shows %s, which has no lease", pod.Name, pod.Status.PodIP)
		}
		theirs = append(theirs, held[i])
	}
	return theirs
}
