package hostlocal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// delTimeout is how long the DEL of one attachment may take: plugins wait for the locks of
// iptables. A plugin that takes longer is not called again.
const delTimeout = 30 * time.Second

// A detachment is an attachment for which the node's plugins can be called, with the
// indices of its warrants.
type detachment struct {
	del     func(ctx context.Context) error
	indices []int
}

// delOf returns a function that calls DEL for an attachment as its runtime would, with the
// configuration of its ADD. It reports false if the entry has none for this network, or if a
// plugin is missing: half a DEL could leave more behind than none.
func (b *Backend) delOf(e cached) (del func(context.Context) error, ok bool) {
	if len(e.Config) == 0 {
		return nil, false
	}
	cni := libcni.NewCNIConfigWithCacheDir(b.settings.BinDirs, e.dir, &pluginExec{hung: &b.hung, pause: pauseSecond})
	runtime := &libcni.RuntimeConf{
		ContainerID:    e.ContainerID,
		NetNS:          append(e.namespaces(), "")[0],
		IfName:         e.IfName,
		Args:           e.Args,
		CapabilityArgs: e.Capability,
	}
	list, err := libcni.NetworkConfFromBytes(e.Config)
	if err != nil || list.Name != e.NetworkName {
		return nil, false
	}
	plugins := list.Plugins
	del = func(ctx context.Context) error { return cni.DelNetworkList(ctx, list, runtime) }
	if len(plugins) == 0 {
		single, err := libcni.NetworkPluginConfFromBytes(e.Config)
		if err != nil {
			return nil, false
		}
		plugins = append(plugins, single)
		del = func(ctx context.Context) error { return cni.DelNetwork(ctx, single, runtime) }
	}
	for _, p := range plugins {
		if !b.hasPlugins(p.Network) {
			return nil, false
		}
	}
	return del, true
}

// hasPlugins reports whether the node has the plugin of a configuration and its IPAM plugin.
func (b *Backend) hasPlugins(c *types.PluginConf) bool {
	for _, name := range []string{c.Type, c.IPAM.Type} {
		if name == "" {
			continue
		}
		if _, err := invoke.FindInPath(name, b.settings.BinDirs); err != nil {
			return false
		}
	}
	return c.Type != ""
}

// delsAtOnce is how many DELs may run at the same time. The plugins of one may take 30 MiB, and
// the systemd unit has 256.
const delsAtOnce = 8

// take waits until a DEL of the container may begin, or until ctx ends. All DELs of one
// container share a turn, because CNI forbids calling its plugins at the same time (SPEC.md,
// "Lifecycle & Ordering").
func (b *Backend) take(ctx context.Context, container string) (done func(), err error) {
	turn := b.turns[crc32.ChecksumIEEE([]byte(container))%delsAtOnce]
	if err := turn.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("%w: %w", ipam.ErrAgain, err)
	}
	return func() { turn.Release(1) }, nil
}

// detach releases the allocations of one attachment by calling its DEL. It takes no lock: the
// plugin does. A DEL may outlast a warrant, so each gets fresh warrants. If DEL fails, the
// files are removed anyway: their sandbox does not exist.
func (r *networkRelease) detach(ctx context.Context, of detachment) {
	done, err := r.take(ctx, r.as[of.indices[0]].Owner.Sandbox)
	if err != nil {
		answerAll(r.errs, of.indices, err)
		return
	}
	defer done()
	var left []int
	for _, i := range r.renew(ctx, of.indices) {
		if there, err := r.holds(r.as[i]); !there {
			r.errs[i] = err
			continue
		}
		left = append(left, i)
	}
	if len(left) == 0 || !r.valid(ctx, left) {
		return
	}
	timed, cancel := context.WithTimeout(ctx, delTimeout)
	defer cancel()
	failed := of.del(timed)
	var stay []int
	for _, i := range left {
		there, err := r.holds(r.as[i])
		if there {
			stay = append(stay, i)
		}
		if errors.Is(err, ipam.ErrChanged) {
			err = nil // DEL removed it, and an ADD made a new one
		}
		r.errs[i] = err
	}
	r.remove(ctx, r.renew(ctx, stay))
	for _, i := range left {
		r.errs[i] = ipam.Begun(r.errs[i])
		if failed != nil && r.errs[i] == nil {
			r.errs[i] = ipam.Worded("released, but its DEL failed, and may have left interfaces and rules behind: "+failed.Error(),
				ipam.ErrUnfinished) // no later run can call the DEL again
		}
	}
}

// renew gets fresh warrants. It returns no indices unless it got all: the allocations of one
// attachment are released together.
func (r *networkRelease) renew(ctx context.Context, indices []int) []int {
	ws := make([]ipam.Warrant, len(indices))
	for n, i := range indices {
		ws[n] = r.ws[i]
	}
	fresh, errs := ipam.Renew(ctx, ws)
	failed := cmp.Or(errs...)
	for n, i := range indices {
		r.ws[i] = fresh[n]
		if failed != nil {
			r.errs[i] = cmp.Or(errs[n], failed)
		}
	}
	if failed != nil {
		return nil
	}
	return indices
}

// valid reports whether all the warrants are valid, and otherwise sets their answers.
func (r *networkRelease) valid(ctx context.Context, indices []int) bool {
	for _, i := range indices {
		_, err := r.ws[i].Allocation()
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ipam.ErrAgain, ctx.Err())
		}
		if err != nil {
			answerAll(r.errs, indices, err)
			return false
		}
	}
	return true
}

// maxAnswer is how many bytes of a plugin's answer are read.
const maxAnswer = 1 << 20

// pipeDelay is how long a process that the plugin left behind may keep the plugin's pipes
// open.
const pipeDelay = time.Second

// busyTries is how many times to try starting a plugin whose file is being written.
const busyTries = 6

// A pluginExec runs the plugins of a node, each in its own process group. It implements
// invoke.Exec. libcni's own implementation waits for every process that the plugin started,
// even after ctx ended.
type pluginExec struct {
	version.PluginDecoder

	// hung has the paths of plugins that did not finish in time. They are not called again.
	hung *sync.Map

	// pause waits before another try to start a plugin whose file is being written. It returns
	// an error if ctx ends first.
	pause func(ctx context.Context) error
}

// FindInPath implements invoke.Exec.
func (*pluginExec) FindInPath(plugin string, paths []string) (string, error) {
	return invoke.FindInPath(plugin, paths)
}

// ExecPlugin implements invoke.Exec. When ctx ends, it kills the plugin's whole process group.
// A plugin that hit a deadline is not started again.
func (e *pluginExec) ExecPlugin(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	if _, hung := e.hung.Load(path); hung {
		return nil, fmt.Errorf("plugin %s timed out before, and is not called again", path)
	}
	for try := 1; ; try++ {
		answer, err := execute(ctx, path, stdin, environ)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			e.hung.Store(path, true)
		}
		// No later run can call a DEL whose lease is gone.
		if try == busyTries || !errors.Is(err, syscall.ETXTBSY) {
			return answer, err
		}
		if stopped := e.pause(ctx); stopped != nil {
			return nil, errors.Join(err, stopped)
		}
	}
}

func pauseSecond(ctx context.Context) error {
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// execute runs a plugin once. A plugin that succeeds but leaves a process behind has still
// succeeded.
func execute(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	var answer answer
	c := exec.CommandContext(ctx, path)
	c.Env = environ
	c.Stdin = bytes.NewReader(stdin)
	c.Stdout = &answer
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.WaitDelay = pipeDelay
	c.Cancel = func() error {
		err := syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	err := c.Run()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		return answer.read.Bytes(), nil
	}
	var said types.Error
	if ctx.Err() == nil && json.Unmarshal(answer.read.Bytes(), &said) == nil && said.Msg != "" {
		return nil, &said
	}
	return nil, fmt.Errorf("plugin %s: %w", path, err)
}

// An answer is what a plugin wrote to its stdout. The zero answer is empty. The buffer is not
// embedded: io.Copy would use its ReadFrom, which has no limit.
type answer struct{ read bytes.Buffer }

// Write implements io.Writer. It returns an error if the answer exceeds maxAnswer.
func (a *answer) Write(p []byte) (int, error) {
	if a.read.Len()+len(p) > maxAnswer {
		return 0, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return a.read.Write(p)
}
