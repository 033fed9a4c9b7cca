package suite_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// The nodes of the cluster. Pods of the tests run on the workers, but for a static one.
const (
	controlPlane = "ip-reaper-e2e-control-plane"
	workerA      = "ip-reaper-e2e-worker"
	workerB      = "ip-reaper-e2e-worker2"
)

// A cluster is the kind cluster, from outside.
type cluster struct {
	*testing.T

	kubeconfig string
	root       string // of the checkout
	kube       kubernetes.Interface
	dynamic    dynamic.Interface
}

// connect finds the cluster that make e2e brought up. Without one there is nothing
// to test, which is said.
func connect(t *testing.T) *cluster {
	t.Helper()
	kubeconfig := os.Getenv("IP_REAPER_KIND_KUBECONFIG")
	if kubeconfig == "" {
		t.Skip("there is no kind cluster: make e2e brings one up and runs this")
	}
	integration, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return &cluster{
		T: t, kubeconfig: kubeconfig, root: filepath.Dir(integration),
		kube: kubernetes.NewForConfigOrDie(config), dynamic: dynamic.NewForConfigOrDie(config),
	}
}

// step runs a part of the test. If it fails, the test ends: the next part begins where this
// one should have left the cluster.
func (c *cluster) step(name string, do func(c *cluster)) {
	c.Helper()
	began := time.Now()
	ok := c.Run(name, func(t *testing.T) {
		part := *c
		part.T = t
		do(&part)
	})
	c.Logf("%s: %v", name, time.Since(began).Round(time.Second))
	if !ok {
		c.FailNow()
	}
}

// must ends the test where something failed that has to work.
func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// command runs a program to its end and returns what it printed.
func (c *cluster) command(stdin, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(c.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out.String(), problems.String())
	}
	return out.String(), nil
}

// kubectl runs kubectl as the cluster's administrator.
func (c *cluster) kubectl(args ...string) string {
	c.Helper()
	out, err := c.tryKubectl(args...)
	c.must(err)
	return out
}

// tryKubectl is kubectl for what may fail.
func (c *cluster) tryKubectl(args ...string) (string, error) {
	bin := cmp.Or(os.Getenv("KUBECTL"), filepath.Join(c.root, "integration", "bin", "kubectl"))
	return c.command("", bin, append([]string{"--kubeconfig", c.kubeconfig}, args...)...)
}

// docker runs the command line of the daemon that the nodes are containers of.
func (c *cluster) docker(args ...string) string {
	c.Helper()
	out, err := c.command("", "docker", args...)
	c.must(err)
	return out
}

// inside runs a script of testdata on a node.
func (c *cluster) inside(node, script string, args ...string) string {
	c.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", script))
	c.must(err)
	out, err := c.command(string(text), "docker", append([]string{"exec", "-i", node, "bash", "-euo", "pipefail", "-s", "--"}, args...)...)
	c.must(err)
	return out
}

// eventually waits until the cluster is as it should be. Each look says what is
// missing, or nothing.
func (c *cluster) eventually(within time.Duration, look func(ctx context.Context) (missing string, err error)) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), within)
	defer cancel()
	for missing := "no answer"; ; {
		now, err := look(ctx)
		switch {
		case err == nil && now == "":
			return
		case err == nil:
			missing = now
		case ctx.Err() == nil:
			missing = err.Error()
		}
		select {
		case <-ctx.Done():
			c.Fatalf("after %v: %s", within, missing)
		case <-time.After(time.Second):
		}
	}
}

// pods lists the pods of a namespace, of all with "".
func (c *cluster) pods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	list, err := c.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
