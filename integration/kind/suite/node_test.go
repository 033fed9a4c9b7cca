package suite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// outOfService says that a node is shut down for certain, so that nothing runs there.
const outOfService = corev1.TaintNodeOutOfService + "=nodeshutdown:NoExecute"

// kill takes the power from a node, and waits until the cluster noticed.
func (c *cluster) kill(node string) {
	c.Helper()
	c.docker("kill", node)
	c.waitNode(node, false)
}

// start gives the power back, and waits until the node is ready.
func (c *cluster) start(node string) {
	c.Helper()
	c.docker("start", node)
	_, err := c.command("", filepath.Join(c.root, "integration", "kind", "network.sh"), node)
	c.must(err)
	c.waitNode(node, true)
}

// cutOff has a node live on without a network, and waits until the cluster noticed.
func (c *cluster) cutOff(node string) {
	c.Helper()
	c.inside(node, "cut-off.sh")
	c.waitNode(node, false)
}

// reconnect ends that.
func (c *cluster) reconnect(node string) {
	c.Helper()
	c.docker("exec", node, "nft", "delete", "table", "inet", "cut_off")
	c.waitNode(node, true)
}

// fence says that the node is out of service, and unfence that it is not.
func (c *cluster) fence(node string) {
	c.Helper()
	c.kubectl("taint", "node", node, outOfService)
}

func (c *cluster) unfence(node string) {
	c.Helper()
	c.kubectl("taint", "node", node, outOfService+"-")
}

// waitNode waits until the cluster takes a node for ready, or for not.
func (c *cluster) waitNode(node string, ready bool) {
	c.Helper()
	c.eventually(2*time.Minute, func(ctx context.Context) (string, error) {
		n, err := c.kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		for _, condition := range n.Status.Conditions {
			if condition.Type == corev1.NodeReady && (condition.Status == corev1.ConditionTrue) == ready {
				return "", nil
			}
		}
		return fmt.Sprintf("%s is not yet ready=%t", node, ready), nil
	})
}
