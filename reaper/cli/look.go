package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/report"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

// lookFlags are the flags of the commands that decide as a dry run does, on a cluster or
// on files, and print something other than its report.
type lookFlags struct {
	commandFlags
	overrides overrides
	filters   filterFlags
	from      []string
	pods      string

	sees func(census.Cluster) // called with the cluster, after the look; may be nil
}

// add adds the flags to a command.
func (f *lookFlags) add(flags *pflag.FlagSet) {
	f.commandFlags.add(flags)
	flags.Lookup("output").Usage = "print the answer in this `FORMAT`: " + listOf(print.LookFormats())
	f.overrides.addTerms(flags)
	f.filters.add(flags, f.target.scope())
	if f.target.scope() == plugin.Node {
		return // files of a node are for the commands of a cluster
	}
	flags.StringSliceVar(&f.from, "from", nil, "read these dumped `FILES` instead of a cluster, as inspect does; - is stdin")
	flags.StringVar(&f.pods, "pods", "", "with --from, a `FILE` with all pods, StatefulSets and nodes of the cluster")
}

// check returns the mistakes in the flags that can be found without a cluster.
func (f lookFlags) check() error {
	if !slices.Contains(print.LookFormats(), f.output) {
		return ipam.BadInput(fmt.Errorf("--output: unknown format %q", f.output), "use "+listOf(print.LookFormats()))
	}
	if len(f.from) == 0 && f.pods != "" && typed(f.flags.Lookup("pods")) {
		return ipam.BadInput(errors.New("--pods: the pods are those of the cluster without --from"), "give both, or neither")
	}
	for _, name := range []string{"kubeconfig", "context", "state-namespace"} {
		if len(f.from) > 0 && typed(f.flags.Lookup(name)) {
			return ipam.BadInput(fmt.Errorf("--from and --%s contradict each other: files are read, and nothing is contacted", name), "give one of them")
		}
	}
	if err := f.overrides.check(); err != nil {
		return err
	}
	return f.commandFlags.check()
}

// look makes a dry run that writes nothing anywhere. Its report has every allocation; a
// brief one counts those in use, and leaves them out. It is nil if there was an error before
// the first listing; otherwise it is true with any error. A plan that a limit refuses, or that is
// for another store, is not an error.
func look(ctx context.Context, w ioStreams, f lookFlags, brief bool) (*report.Report, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	backends := w.backends // files may be of any
	if len(f.from) == 0 {
		backends = plugin.Of(w.backends, f.target.scope())
	}
	selection, err := f.filters.selection(backends)
	if err != nil {
		return nil, err
	}
	p, err := loadPolicy(ctx, w, f.policyFile)
	if err != nil {
		return nil, err
	}
	if len(f.from) > 0 {
		f.overrides.apply(&p)
		return offline(ctx, w, reaper.Options{Policy: p, PolicyFile: f.policyFile, Selection: selection, Brief: brief}, f.pods, f.from, f.sees)
	}
	conn, err := f.connect(ctx, w, false, p, newLogger(w, f.logFormat, f.verbose))
	if err != nil {
		return nil, err
	}
	defer conn.close()
	o := conn.Options
	f.overrides.apply(&o.Policy)
	dryRun := true
	o.Policy.DryRun = &dryRun
	o.Selection, o.Brief = selection, brief
	if w.terminal {
		o.Progress = w.progress
	}
	found, err := reaper.Run(ctx, o)
	if f.sees != nil {
		f.sees(o.Cluster)
	}
	if limit := (*judge.LimitError)(nil); errors.As(err, &limit) || errors.Is(err, reaper.ErrAnotherStore) {
		err = nil
	}
	return &found, err
}

// offline makes the report of a dry run on files. It is nil if there was an error before
// the first listing. The options have the policy and how to report. sees is that of lookFlags.
func offline(ctx context.Context, w ioStreams, o reaper.Options, pods string, files []string, sees func(census.Cluster)) (*report.Report, error) {
	read, err := dump.Read(ctx, w.stdin, files, pods)
	if err != nil {
		return nil, err
	}
	stores, unknown := plugin.Offline(w.backends, read.Stored, o.Policy)
	o.ID, o.Version, o.Backends, o.Protectors = newID(), buildVersion(), stores, plugin.Protectors(w.backends)
	o.Now, o.Logger = time.Now, slog.New(slog.DiscardHandler)
	if pods != "" {
		o.Cluster = &read.Cluster
	}
	found, err := reaper.Inspect(ctx, o)
	if sees != nil {
		sees(&read.Cluster)
	}
	found.Warnings = slices.Concat(dump.Ignored(unknown), found.Warnings)
	if len(stores) == 0 {
		found.Warnings = append(found.Warnings, "the files have no objects of a store that ip-reaper knows")
	}
	return &found, err
}

const explainAbout = `explain shows why a run would keep or release an address, or the addresses of a
pod or a node: which stores hold it, which rules were tried until one matched
and on what evidence, since when it has been leaked, when it is due, and what
would change that.

It also tells which networks a hanging pod waits for. Of these networks, and of
a pool, a network or a CIDR, it shows how full they are, how much has leaked and
why, and what would free it.

It is read-only.
`

const explainExamples = `  # Why is this address kept or released?
  %[1]s explain%[2]s 10.0.0.7

  # The addresses of a pod, and of a node
  %[1]s explain%[2]s shop/web-0
  %[1]s explain%[2]s pod/web-0 -n shop
  %[1]s explain%[2]s node/worker-17

  # Why is this network or this pool full?
  %[1]s explain%[2]s 10.0.0.0/24
  %[1]s explain%[2]s pool/kube-system/10.0.0.0-24`

const explainFiles = `

  # From files that kubectl dumped
  %[1]s explain 10.0.0.7 --from pools.yaml --pods pods.json`

func newExplain(w ioStreams, at target) *cobra.Command {
	var f lookFlags
	f.target = at
	cmd := &cobra.Command{
		Use:     "explain ADDRESS | CIDR | [NAMESPACE/]POD | node/NAME | pool/NAME",
		Short:   "Show why an address is kept or released",
		Long:    explainAbout,
		Example: examplesOf(w, at, explainExamples, explainFiles),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return ipam.BadInput(errors.New("explain needs exactly one argument"), cmd.CommandPath()+" ADDRESS, CIDR, NAMESPACE/POD, node/NAME or pool/NAME")
		},
		RunE: withEnv(w, func(ctx context.Context, args []string) error { return explain(ctx, w, f, args[0]) }),
	}
	f.add(cmd.Flags())
	return cmd
}

// An asker is a cluster that knows which networks a pod requests.
type asker interface {
	Asking(ctx context.Context, namespace, name string) ([]report.Asking, error)
}

// explain runs the command, from its flags to its explanation.
func explain(ctx context.Context, w ioStreams, f lookFlags, subject string) error {
	namespace := ""
	if one := f.filters.selected.Namespaces; len(one) == 1 {
		namespace = one[0]
	}
	question, err := report.ParseQuestion(subject, namespace)
	if err != nil {
		return err
	}
	var asking []report.Asking
	var askErr error
	f.sees = func(c census.Cluster) {
		if c, ok := c.(asker); ok && question.NamesPod() {
			asking, askErr = c.Asking(ctx, question.Namespace, cmp.Or(question.Pod, question.Name))
		}
	}
	found, lookErr := look(ctx, w, f, false)
	if found == nil {
		return lookErr
	}
	if askErr != nil {
		found.Warnings = append(found.Warnings, "what the pod waits for is unknown: "+oneLine(askErr))
	}
	found.Result.ExitCode, found.Result.Error = exitCode(ctx, lookErr), oneLine(lookErr)
	x, err := report.Explain(*found, question, asking, runCommand(w, f.commandFlags, found.Run))
	if err != nil {
		return errors.Join(lookErr, err)
	}
	return errors.Join(lookErr, print.WriteExplanation(w.stdout, f.output, x))
}

// runCommand returns the words of a run on the same target, with the same policy, and with more of
// the flags if they were given. On a cluster, a run that writes requires the context.
func runCommand(w ioStreams, f commandFlags, run report.RunInfo, more ...string) []string {
	words := append(strings.Fields(w.name()), "run")
	names := []string{"kubeconfig", "state-namespace", "policy", "grace-period", "min-age"}
	if f.target.scope() == plugin.Node {
		words[len(words)-1] = "node"
		names = []string{"node-name", "state-dir", "runtime-endpoint", "runtime-config", "pods", "kubeconfig", "context", "policy", "grace-period", "min-age"}
	} else if run.Context != "" {
		words = append(words, "--context", run.Context)
	}
	for _, name := range append(names, more...) {
		flag := f.flags.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			words = append(words, "--"+name, value)
		}
	}
	return words
}

const poolsAbout = `pools shows how full the networks are, the fullest first: how many addresses
pods have, how many are leaked, and how many are free. A network is an IPPool of
Calico with all of its blocks, or a range of Whereabouts with all of its
attachments. The capacity counts only addresses that pods can get: none that are
reserved, excluded, or outside of what is handed out.

It is read-only, and decides as a dry run does.
`

const poolsExamples = `  # Which networks run dry?
  %[1]s pools%[2]s

  # Which nodes leak most? How old are the leaks?
  %[1]s pools%[2]s --top nodes
  %[1]s pools%[2]s --top ages

  # Every pool of every network, for jq
  %[1]s pools%[2]s --all -o json`

const poolsFiles = `

  # From files that kubectl dumped
  %[1]s pools --from pools.yaml --pods pods.json`

// poolsFlags are the flags of the pools command.
type poolsFlags struct {
	lookFlags
	all   bool
	top   string
	limit int
}

func newPools(w ioStreams, at target) *cobra.Command {
	var f poolsFlags
	f.target = at
	cmd := &cobra.Command{
		Use:     "pools",
		Short:   "Show how full networks and pools are, and who leaks most",
		Long:    poolsAbout,
		Example: examplesOf(w, at, poolsExamples, poolsFiles),
		Args:    noArgs,
		RunE:    withEnv(w, func(ctx context.Context, _ []string) error { return pools(ctx, w, f) }),
	}
	flags := cmd.Flags()
	f.add(flags)
	flags.BoolVar(&f.all, "all", false, "list the pools of each network below it")
	flags.StringVar(&f.top, "top", "", "also show who leaks most, by `WHAT`: "+listOf(print.Tops()))
	flags.IntVar(&f.limit, "limit", 10, "show this `NUMBER` of rows of --top")
	return cmd
}

// pools runs the command, from its flags to its tables.
func pools(ctx context.Context, w ioStreams, f poolsFlags) error {
	if f.top != "" && !slices.Contains(print.Tops(), f.top) {
		return ipam.BadInput(fmt.Errorf("--top: unknown %q", f.top), "use "+listOf(print.Tops()))
	}
	if f.limit < 1 {
		return ipam.BadInput(fmt.Errorf("--limit: %d is less than 1", f.limit), "")
	}
	if f.all && f.top == "" && f.flags.Changed("limit") {
		return ipam.BadInput(errors.New("--all and --limit contradict each other: --all shows every pool"), "give one of them, or --top")
	}
	found, err := look(ctx, w, f.lookFlags, true)
	if found == nil {
		return err
	}
	return errors.Join(err, print.WritePools(w.stdout, print.PoolsOptions{
		Format: f.output, All: f.all, Top: f.top, Limit: f.limit,
	}, *found))
}

const inspectAbout = `inspect reads dumps of IPAM stores, the output of kubectl or etcdctl, and prints
the report of a dry run: the allocated addresses and their owners. With the pods
of the same cluster, it also shows which addresses would be released, and why.
It contacts nothing.

It reads YAML and JSON, with lists or several documents in a file, and the
output of "etcdctl get -w json". It knows the stores of the backends %s.

Dump the pods last: an address that was allocated after them looks leaked.
`

const inspectExamples = `  # Who has the addresses of Whereabouts, and which are leaked?
  kubectl get ippools.whereabouts.cni.cncf.io -A -o yaml > pools.yaml
  kubectl get pods,statefulsets,nodes -A -o json > pods.json
  %[1]s inspect pools.yaml --pods pods.json

  # The same of Calico in etcd, without pods
  etcdctl get --prefix /calico/ipam/v2/ -w json | %[1]s inspect -`

// inspectFlags are the flags of the inspect command.
type inspectFlags struct {
	policy  string
	pods    string
	output  string
	out     outputFlags
	all     bool
	filters filterFlags
}

func newInspect(w ioStreams) *cobra.Command {
	var f inspectFlags
	known := slices.DeleteFunc(slices.Clone(w.backends), func(p plugin.Plugin) bool { return p.Offline == nil })
	cmd := &cobra.Command{
		Use:     "inspect FILE...",
		Short:   "Report from dumped files, without contacting anything",
		Long:    fmt.Sprintf(inspectAbout, strings.Join(backendNames(known), ", ")),
		Example: fmt.Sprintf(inspectExamples, w.name()),
		Args:    files,
		RunE:    withEnv(w, func(ctx context.Context, files []string) error { return inspect(ctx, w, f, files) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.policy, "policy", "", "judge by this policy `FILE`; without one, by the defaults")
	flags.StringVar(&f.pods, "pods", "", "`FILE` with all pods, StatefulSets and nodes of the cluster")
	flags.StringVarP(&f.output, "output", "o", "table", "print the report in this `FORMAT`: "+listOf(print.Usages()))
	flags.BoolVar(&f.all, "all", false, "list every allocation, even those in use, and fold none")
	f.out.add(flags)
	f.filters.add(flags, plugin.Cluster)
	return cmd
}

// inspect runs the command, from its files to its report.
func inspect(ctx context.Context, w ioStreams, f inspectFlags, files []string) error {
	printing, err := f.out.options(w, f.output, f.all)
	if err != nil {
		return err
	}
	selection, err := f.filters.selection(w.backends)
	if err != nil {
		return err
	}
	p, err := loadPolicy(ctx, w, f.policy)
	if err != nil {
		return err
	}
	found, err := offline(ctx, w, reaper.Options{Policy: p, PolicyFile: f.policy, Selection: selection, Brief: printing.Brief()}, f.pods, files, nil)
	if found == nil {
		return err
	}
	found.Result.ExitCode, found.Result.Error = exitCode(ctx, err), oneLine(err)
	return errors.Join(err, print.Write(w.stdout, printing, *found))
}
