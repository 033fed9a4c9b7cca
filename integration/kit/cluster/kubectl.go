package cluster

import (
	"context"
	"os/exec"
	"strings"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// Kubectl runs the real kubectl as the cluster's administrator, with standard input, and returns
// all that it printed, even if it failed.
func (c *Cluster) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	kubectl, err := assets.Path("kubectl")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, kubectl, append([]string{"--kubeconfig", c.Kubeconfig, "--cache-dir", c.Dir}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
