package cli

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/user"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/cri"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/node"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// connect implements target. It asks the container runtime for its version, unless the
// command reads the state only.
func (f *nodeFlags) connect(ctx context.Context, w ioStreams, of commandFlags, _ bool, p policy.Policy, logger *slog.Logger) (connection, error) {
	name := f.name(w)
	if name == "" {
		return connection{}, ipam.BadInput(errors.New("the name of this node is not known"), "give it by --node-name")
	}
	folder := node.NewFolder(f.stateDir)
	journals := folder.Journals(retention(p))
	c := connection{
		node: name, stateDir: folder.Path(), by: starter(w),
		ledgers: folder.Ledgers(), journals: journals, lock: folder.Lock(),
		access:     func(context.Context, []string) reaper.Denied { return reaper.Denied{} },
		clockSkew:  func() (time.Duration, bool) { return 0, false },
		checkState: func(context.Context, bool) ([]string, error) { return nil, folder.Check() },

		firstAnswer: func(context.Context) error { return nil },
	}
	c.close = func() { _ = journals.Close() }
	if of.stateOnly {
		return c, nil
	}
	var err error
	if c.backends, err = plugin.Open(ctx, plugin.Of(w.backends, plugin.Node), nil, w.env, p, cmp.Or(of.concurrency, defaultConcurrency)); err != nil {
		return connection{}, err
	}
	var pods census.Cluster
	if f.pods == podsAPI {
		if pods, err = f.podsOf(w, of, name, &c, logger); err != nil {
			return connection{}, err
		}
	}
	endpoint, err := cri.Endpoint(f.runtimeEndpoint, w.env, f.runtimeConfig)
	if err != nil {
		return connection{}, err
	}
	runtime, err := cri.Open(ctx, endpoint)
	if err != nil {
		return connection{}, err
	}
	logger.Info("node", "name", name, "stateDir", c.stateDir, "runtime", endpoint, "pods", f.pods)
	c.cluster = cri.Cluster(runtime, pods, w.env(podUIDVariable), w.kubelets)
	c.close = func() { _ = errors.Join(journals.Close(), runtime.Close()) }
	return c, nil
}

// podsOf returns the pods that the API server has of this node. It tells the connection of
// the API server.
func (f *nodeFlags) podsOf(w ioStreams, of commandFlags, node string, c *connection, logger *slog.Logger) (census.Cluster, error) {
	config, contextName, _, err := loadConfig(clusterFlags{kubeconfig: f.kubeconfig, context: f.context}, w.env)
	if err != nil {
		return nil, err
	}
	c.clockSkew = prepare(config, of).Skew
	clients, err := clientsOf(config)
	if err != nil {
		return nil, err
	}
	c.firstAnswer = func(ctx context.Context) error { return firstAnswer(ctx, w, config.Host, clients, of.timeout, logger) }
	c.address, c.context = config.Host, contextName
	return state.NewNodePods(clients.core, clients.raw, node), nil
}

// name implements target.
func (f *nodeFlags) name(w ioStreams) string {
	name := cmp.Or(f.nodeName, w.env(nodeNameVariable))
	if name == "" {
		name, _ = os.Hostname()
	}
	return name
}

// starter says who started the program on a node: the pod, or the user.
func starter(w ioStreams) string {
	if pod := w.env("POD_NAME"); pod != "" {
		return "pod " + pod
	}
	if self, err := user.Current(); err == nil {
		return "user " + self.Username
	}
	return ""
}
