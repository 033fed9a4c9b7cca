package calico

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// How long a server may take to start before that fails, and to end before it is killed.
const (
	startTimeout = time.Minute
	stopTimeout  = 10 * time.Second
)

// Controllers is a running kube-controllers with only the node controller, which collects leaked
// addresses.
type Controllers struct {
	guard   *assets.Guard
	process *assets.Process
}

// StartControllers starts kube-controllers, which looks for leaks twice in each grace period and
// whenever a block, a pod or a node changes. The caller must Stop them.
func (d *Datastore) StartControllers(ctx context.Context, grace time.Duration) (_ *Controllers, err error) {
	c := &Controllers{}
	dir, err := os.MkdirTemp("", "ip-reaper-calico-")
	if err != nil {
		return nil, err
	}
	program, args, env, err := d.ControllersCommand(ctx, grace, filepath.Join(dir, "status.json"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if c.guard, err = assets.StartGuard(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if c.process, err = c.guard.Run("kube-controllers", program, args, env); err != nil {
		return nil, errors.Join(err, c.guard.Release())
	}
	if err := c.waitReady(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// ControllersCommand configures kube-controllers and returns the program, its arguments and the
// environment variables it needs. It writes its status into the file.
func (d *Datastore) ControllersCommand(ctx context.Context, grace time.Duration, status string) (program string, args, env []string, err error) {
	if program, err = assets.Path("kube-controllers"); err != nil {
		return "", nil, nil, err
	}
	err = d.Apply(ctx, "KubeControllersConfiguration", map[string]string{"name": "default"}, map[string]any{
		"controllers":            map[string]any{"node": map[string]any{"leakGracePeriod": grace.String()}},
		"healthChecks":           "Disabled",
		"prometheusMetricsPort":  0,
		"etcdV3CompactionPeriod": "0s",
	})
	return program, []string{"-status-file=" + status}, slices.Concat(d.env, []string{"ENABLED_CONTROLLERS=node"}), err
}

// waitReady waits until kube-controllers has seen every block.
func (c *Controllers) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return poll(ctx, c.process, func() error {
		if !strings.Contains(c.Log(), "Syncer is InSync") {
			return errors.New("kube-controllers are not in sync")
		}
		return nil
	})
}

// Log returns what kube-controllers has logged so far.
func (c *Controllers) Log() string { return c.process.Log() }

// Stop ends kube-controllers. It is an error if it had ended before.
func (c *Controllers) Stop() error {
	return errors.Join(c.process.Stop(stopTimeout), c.guard.Release())
}

// poll tries until there is no error, or the process or the context ends.
func poll(ctx context.Context, p *assets.Process, try func() error) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w\n%s", context.Cause(ctx), err, p.Log())
		case <-p.Done():
			return fmt.Errorf("it has ended: %w\n%s", err, p.Log())
		case <-ticker.C:
		}
	}
}
