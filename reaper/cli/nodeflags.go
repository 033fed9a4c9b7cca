package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/reaper/cri"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
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
	flags.StringVar(&f.nodeName, "node-name", "", "`NAME` of this node in the report, and in the API server; by default the variable "+nodeNameVariable+", then the host name")
	flags.StringVar(&f.stateDir, "state-dir", node.DefaultFolder, "`FOLDER` of ledger, journals and lock")
	flags.StringVar(&f.runtimeEndpoint, "runtime-endpoint", "",
		"`SOCKET` of the kubelet's container runtime; by default "+cri.EndpointVariable+", then --runtime-config, then the one that exists of "+strings.Join(cri.Sockets(), ", "))
	flags.StringVar(&f.runtimeConfig, "runtime-config", "", "configuration `FILE` of crictl, which may name the socket; by default "+cri.DefaultConfig)
	flags.StringVar(&f.pods, "pods", podsNone, "`SOURCE` of the pods of this node, which keep the addresses that they show: none, or api for the API server, which then must answer")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "with --pods api, a kubeconfig `FILE`; by default the pod's service account, then KUBECONFIG, then ~/.kube/config")
	flags.StringVar(&f.context, "context", "", "with --pods api, the kubeconfig context")
}

// check implements target.
func (f *nodeFlags) check() error {
	if !slices.Contains(podSources, f.pods) {
		return ipam.BadInput(fmt.Errorf("--pods: unknown source %q", f.pods), "use "+strings.Join(podSources, " or "))
	}
	for _, name := range []string{"kubeconfig", "context"} {
		if f.pods == podsNone && typed(f.flags.Lookup(name)) {
			return ipam.BadInput(fmt.Errorf("--%s: no API server is asked without --pods api", name), "give both, or neither")
		}
	}
	if f.stateDir == "" { // such as --state-dir "$UNSET"
		return ipam.BadInput(errors.New("--state-dir: no folder is named"), "name one, or leave the flag out")
	}
	return nil
}

// command implements target.
func (f *nodeFlags) command(report.RunInfo) []string {
	words := []string{"node"}
	for _, name := range []string{"node-name", "state-dir", "runtime-endpoint", "runtime-config", "pods", "kubeconfig", "context"} {
		if flag := f.flags.Lookup(name); flag.Changed {
			words = append(words, "--"+name, flag.Value.String())
		}
	}
	return words
}
