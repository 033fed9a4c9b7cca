package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/cri"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/node"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// nodeFlags say how a command works on this node. It implements target.
type nodeFlags struct {
	flags *pflag.FlagSet

	nodeName        string
	stateDir        string
	runtimeEndpoint string
	runtimeConfig   string
	pods            string
	kubeconfig      string
	context         string
}

// The values of --pods.
const (
	podsNone = "none"
	podsAPI  = "api"
)

var podSources = []string{podsNone, podsAPI}

// nodeNameVariable has the name of the node in a pod that sets it from spec.nodeName.
const nodeNameVariable = "NODE_NAME"

// podUIDVariable has the UID of the pod that sets it from metadata.uid: see cri.Cluster.
const podUIDVariable = "POD_UID"

// scope implements target.
func (*nodeFlags) scope() plugin.Scope { return plugin.Node }

// add implements target.
func (f *nodeFlags) add(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringVar(&f.nodeName, "node-name", "", "call this node by this `NAME` in the report, and look for it in the API server; by default, the variable "+nodeNameVariable+", then the host name")
	flags.StringVar(&f.stateDir, "state-dir", node.DefaultFolder, "keep the ledger, the journals and the lock in this `FOLDER`")
	flags.StringVar(&f.runtimeEndpoint, "runtime-endpoint", "",
		"ask the kubelet's container runtime at this `SOCKET`; by default, "+cri.EndpointVariable+", then --runtime-config, then whichever exists of "+strings.Join(cri.Sockets(), ", "))
	flags.StringVar(&f.runtimeConfig, "runtime-config", "", "take the socket from this `FILE` of crictl; by default, "+cri.DefaultConfig)
	flags.StringVar(&f.pods, "pods", podsNone, "also keep the addresses that pods of this node show in this `SOURCE`: none, or api for the API server, which then must answer")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "with --pods api, use this kubeconfig `FILE`; by default, the pod's service account, then KUBECONFIG, then ~/.kube/config")
	flags.StringVar(&f.context, "context", "", "with --pods api, use this `CONTEXT` of the kubeconfig")
}

// check implements target.
func (f *nodeFlags) check() error {
	if !slices.Contains(podSources, f.pods) {
		return ipam.BadInput(fmt.Errorf("--pods: unknown source %q", f.pods), "use "+strings.Join(podSources, " or "))
	}
	for _, name := range []string{"kubeconfig", "context"} {
		if f.pods == podsNone && typed(f.flags.Lookup(name)) {
			return ipam.BadInput(fmt.Errorf("--%s needs --pods api", name), "give both, or neither")
		}
	}
	if f.stateDir == "" { // such as --state-dir "$UNSET"
		return ipam.BadInput(errors.New("--state-dir is empty"), "name a folder, or leave the flag out")
	}
	return nil
}

// connect implements target. It asks the container runtime for its version, unless the
// command only reads the state.
func (f *nodeFlags) connect(ctx context.Context, w ioStreams, o connectOptions) (connection, error) {
	name := f.name(w)
	if name == "" {
		return connection{}, ipam.BadInput(errors.New("cannot tell the name of this node"), "give it with --node-name")
	}
	folder := node.NewFolder(f.stateDir)
	journals := folder.Journals(retention(o.policy))
	c := connection{
		Options: reaper.Options{
			Origin: report.Origin{
				Node:       name,
				StateDir:   folder.Path(),
				Kubeconfig: f.kubeconfig,
				By:         starter(w),
			},
			Policy:  o.policy,
			Ledgers: folder.Ledgers(),
			Lock:    folder.Lock(),
		},
		journals: journals, close: func() { _ = journals.Close() },
	}
	if o.stateOnly {
		return c, folder.Check()
	}
	var err error
	if c.Backends, c.Protectors, err = plugin.Open(ctx, plugin.Of(w.backends, plugin.Node), plugin.Env{Getenv: w.env, Concurrency: o.concurrency}, o.policy); err != nil {
		return connection{}, err
	}
	endpoint, err := cri.Endpoint(f.runtimeEndpoint, w.env, f.runtimeConfig)
	if err != nil {
		return connection{}, err
	}
	runtime, err := cri.Open(ctx, endpoint)
	if err != nil {
		return connection{}, err
	}
	var pods census.Cluster
	if f.pods == podsAPI {
		pods, err = f.podsOf(ctx, w, o, &c)
	}
	if err = cmp.Or(err, folder.Check()); err != nil {
		_ = runtime.Close()
		return connection{}, err
	}
	o.logger.Info("node", "name", name, "stateDir", c.StateDir, "runtime", endpoint, "pods", f.pods)
	c.Cluster = cri.Cluster(runtime, pods, w.env(podUIDVariable), w.kubelets, attachedBy(c.Backends))
	c.close = func() { _ = errors.Join(journals.Close(), runtime.Close()) }
	return c, nil
}

// attachedBy returns what reads the attachments of sandboxes, even if the policy does not let the backend
// list; nil if no backend does.
func attachedBy(backends []ipam.Backend) cri.Attached {
	for _, b := range backends {
		if attacher, ok := b.(ipam.Attacher); ok {
			return attacher.Attachments
		}
	}
	return nil
}

// podsOf returns the pods that the API server has of this node. It notes the API server in
// the connection.
func (f *nodeFlags) podsOf(ctx context.Context, w ioStreams, o connectOptions, c *connection) (census.Cluster, error) {
	at, err := locate(f.kubeconfig, clientcmd.ConfigOverrides{CurrentContext: f.context}, w.env)
	if err != nil {
		return nil, err
	}
	clients, clock, err := at.clients(o.concurrency, requestTimeout)
	if err != nil {
		return nil, err
	}
	c.Origin.Cluster, c.Context, c.ClockSkew = at.config.Host, at.context, clock.Skew
	c.ClusterUID = clusterUID(clients, o.logger)
	return state.NewNodePods(clients.core, clients.raw, c.Node),
		kube.FirstAnswer(ctx, clients.raw, at.String(), min(o.timeout, w.firstAnswer))
}

// workstation implements target.
func (*nodeFlags) workstation(ioStreams) bool { return false }

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
