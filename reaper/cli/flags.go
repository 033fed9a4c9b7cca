package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

// commandFlags are the flags of every command that contacts a cluster or a node.
type commandFlags struct {
	flags  *pflag.FlagSet
	target target

	policyFile  string // empty if none is given
	output      string
	logFormat   string
	verbose     bool
	timeout     time.Duration
	concurrency int // the most requests at the same time

	stateOnly bool // it reads nothing but what earlier runs stored
}

// defaultConcurrency is less than what an API server handles at the same time for all of
// its clients of the same priority.
const defaultConcurrency = 32

const defaultTimeout = 10 * time.Minute

// add adds the flags to a command.
func (f *commandFlags) add(flags *pflag.FlagSet) {
	f.flags, f.concurrency = flags, defaultConcurrency
	f.target.add(flags)
	usage := "take the policy from this `FILE`; outside a cluster, it is for dry runs, and the default is the installed one; elsewhere, the built-in defaults are"
	if f.target.scope() == plugin.Node {
		usage = "policy `FILE`; without one, a dry run with the defaults"
	}
	flags.StringVar(&f.policyFile, "policy", "", usage)
	flags.StringVarP(&f.output, "output", "o", "table", "print the report in this `FORMAT`: "+listOf(print.Formats()))
	flags.DurationVar(&f.timeout, "timeout", defaultTimeout, "give up after this `DURATION`")
	flags.StringVar(&f.logFormat, "log-format", "", "log to stderr in this `FORMAT`, text or json; by default, text where people read it (on a terminal, or together with stdout) and json elsewhere")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log every decision and every release")
}

// check returns the mistakes in the flags that can be found without the target.
func (f commandFlags) check() error {
	if f.policyFile == "" && f.flags.Changed("policy") { // such as --policy "$UNSET"
		return ipam.BadInput(errors.New("--policy is empty"), "name a file, or leave the flag out")
	}
	if f.timeout <= 0 {
		return ipam.BadInput(fmt.Errorf("--timeout: %v is not a positive duration", f.timeout), "give one such as 10m")
	}
	if f.logFormat != "" && !slices.Contains(logFormats, f.logFormat) {
		return ipam.BadInput(fmt.Errorf("--log-format: unknown format %q", f.logFormat), "use "+strings.Join(logFormats, " or "))
	}
	return f.target.check()
}

// shown reports whether the report is printed for people where the log is, too.
func (f commandFlags) shown(w ioStreams) bool {
	return w.together && !f.verbose && (f.output == "table" || f.output == "wide")
}

// connect connects to the target. writes says that the command writes anything. p is the policy of
// the file, or the default; the connection has the one to use.
func (f commandFlags) connect(ctx context.Context, w ioStreams, writes bool, p policy.Policy, logger *slog.Logger) (connection, error) {
	c, err := f.target.connect(ctx, w, connectOptions{f, writes, p, logger})
	c.ID, c.Version, c.Program = newID(), buildVersion(), w.name()
	c.PolicyFile = f.policyFile
	c.Elsewhere = elsewhere(w, f.target.scope(), c.Policy)
	c.Now, c.Logger, c.Timeout = w.now, logger, f.timeout
	return c, err
}

// elsewhere says which run opens each backend that the policy turns on and that a run of this
// scope does not open. So a report does not silently omit it.
func elsewhere(w ioStreams, scope plugin.Scope, p policy.Policy) map[string]string {
	says := map[plugin.Scope]string{
		plugin.Node:    fmt.Sprintf("its store is on the nodes: run %s node there", w.name()),
		plugin.Cluster: fmt.Sprintf("its store is in the cluster: run %s run", w.name()),
	}
	found := make(map[string]string)
	for _, one := range w.backends {
		if one.Scope != scope && p.Backends[one.Name].Enabled == policy.On {
			found[one.Name] = says[one.Scope]
		}
	}
	return found
}

// newID returns an ID for a run, which begins with its time.
func newID() string { return time.Now().UTC().Format("20060102-150405-") + rand.Text()[:6] }

// outputFlags are the flags of the commands that print the report of a run or a restore,
// besides --output.
type outputFlags struct {
	color   string
	noTrunc bool
	quiet   bool
}

// add adds the flags to a command.
func (f *outputFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.color, "color", "auto", "colour tables: `WHEN` is auto (on a terminal, unless NO_COLOR is set), always or never")
	flags.BoolVar(&f.noTrunc, "no-trunc", false, "do not fit tables to the terminal; elsewhere nothing is shortened anyway")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print only how much is leaked, why the plan was refused, what failed, and how to undo a release")
}

// options returns how to print a report. Tables fit a terminal; elsewhere they are whole, so that
// grep finds everything.
func (f outputFlags) options(w ioStreams, output string, all bool) (print.Options, error) {
	o := print.Options{Format: output, All: all, Width: w.width(), Quiet: f.quiet}
	if f.noTrunc {
		o.Width = 0
	}
	switch f.color {
	case "always":
		o.Color = true
	case "never":
	case "auto":
		o.Color = w.stdoutTerminal && w.env("NO_COLOR") == "" && w.env("TERM") != "dumb"
	default:
		return o, ipam.BadInput(fmt.Errorf("--color: unknown value %q", f.color), "use auto, always or never")
	}
	if f.quiet && all {
		return o, ipam.BadInput(errors.New("--quiet and --all contradict each other: --quiet prints no allocation"), "give one of them")
	}
	if f.quiet && output != "table" {
		return o, ipam.BadInput(errors.New("--quiet prints no report, so it has no --output"), "give one of them")
	}
	if err := print.Check(output); err != nil {
		return o, ipam.BadInput(fmt.Errorf("--output: %w", err), "use "+listOf(print.Formats()))
	}
	return o, nil
}

// filterFlags are the flags that narrow what a command reports and releases. Without any
// of them, it is about all allocations.
type filterFlags struct {
	flags         *pflag.FlagSet
	allNamespaces bool
	pods          []string
	ips           []string
	selected      judge.Selection // without the pods and the addresses
}

// add adds the flags to a command of the scope.
func (f *filterFlags) add(flags *pflag.FlagSet, scope plugin.Scope) {
	f.flags = flags
	s := &f.selected
	flags.StringSliceVarP(&s.Namespaces, "namespace", "n", nil, "only pods in this `NAMESPACE`; repeatable")
	flags.StringSliceVar(&s.ExcludedNamespaces, "exclude-namespace", nil, "no pods in this `NAMESPACE`, and nothing whose pod is unknown; repeatable")
	flags.StringSliceVar(&f.pods, "pod", nil, "only this `POD`, as NAMESPACE/NAME, or as NAME with -n; repeatable")
	if scope == plugin.Cluster { // on a node, all are of this node
		flags.StringSliceVar(&s.Nodes, "node", nil, "only pods of this `NODE`; repeatable")
	}
	flags.StringSliceVar(&s.Pools, "pool", nil, "only this `POOL`: a pool, with or without its namespace, a network, a network attachment as NAMESPACE/NAME, or a CIDR around pools; repeatable")
	flags.StringSliceVar(&f.ips, "ip", nil, "only this `ADDRESS`, in every network, with what the same CNI ADD allocated; repeatable")
	flags.StringSliceVar(&s.Backends, "backend", nil, "only this `BACKEND`; repeatable")
	flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "pods in all namespaces, which is the default")
}

// selection returns what the flags select, or the mistake in them.
func (f *filterFlags) selection(plugins []plugin.Plugin) (judge.Selection, error) {
	s := f.selected
	if err := checkNames(f.flags, map[string][]string{"namespace": s.Namespaces, "exclude-namespace": s.ExcludedNamespaces, "pod": f.pods, "node": s.Nodes, "pool": s.Pools, "ip": f.ips, "backend": s.Backends}); err != nil {
		return s, err
	}
	if f.allNamespaces && len(s.Namespaces) > 0 {
		return s, ipam.BadInput(errors.New("--all-namespaces and --namespace contradict each other"), "give one of them")
	}
	if len(s.ExcludedNamespaces) > 0 && len(s.Namespaces) > 0 {
		return s, ipam.BadInput(errors.New("--namespace and --exclude-namespace contradict each other"), "give one of them")
	}
	for _, pod := range f.pods {
		named, err := podNames(pod, s.Namespaces)
		if err != nil {
			return s, err
		}
		s.Pods = append(s.Pods, named...)
	}
	var err error
	if s.Addresses, err = addressesOf(f.ips); err != nil {
		return s, err
	}
	known := backendNames(plugins)
	for _, name := range s.Backends {
		if !slices.Contains(known, name) {
			return s, ipam.BadInput(fmt.Errorf("--backend: no backend named %q", name), cmp.Or(printable.Meant(name, known), "the backends are "+strings.Join(known, ", ")))
		}
	}
	return s, nil
}

// checkNames returns an error if a name of these flags is empty: an unset variable of a script
// must not select everything.
func checkNames(flags *pflag.FlagSet, given map[string][]string) error {
	for _, flag := range slices.Sorted(maps.Keys(given)) {
		if names := given[flag]; flags.Changed(flag) && (len(names) == 0 || slices.Contains(names, "")) {
			return ipam.BadInput(fmt.Errorf("--%s: a name is empty", flag), "leave the flag out to select all")
		}
	}
	return nil
}

// backendNames returns the names of the backends.
func backendNames(plugins []plugin.Plugin) []string {
	var names []string
	for _, p := range plugins {
		if p.Open != nil {
			names = append(names, p.Name)
		}
	}
	return names
}

// addressesOf returns the addresses that --ip names, as pods show them.
func addressesOf(texts []string) (addresses []netip.Addr, err error) {
	for _, text := range texts {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return nil, ipam.BadInput(fmt.Errorf("--ip: %q is not an IP address", text), "give one such as 10.0.0.7; --pool takes a CIDR")
		}
		addresses = append(addresses, ipam.Shown(ip))
	}
	return addresses, nil
}

// podNames returns the pods that --pod names, each as namespace/name. A bare name is in
// each of the namespaces.
func podNames(pod string, namespaces []string) ([]string, error) {
	switch namespace, name, whole := strings.Cut(pod, "/"); {
	case whole && (namespace == "" || name == "" || strings.Contains(name, "/")):
		return nil, ipam.BadInput(fmt.Errorf("--pod: %q does not name a pod", pod), "give NAMESPACE/NAME")
	case whole && len(namespaces) > 0 && !slices.Contains(namespaces, namespace):
		return nil, ipam.BadInput(fmt.Errorf("--pod: %s is not in the namespace %s", pod, strings.Join(namespaces, " or ")), "")
	case whole:
		return []string{pod}, nil
	case len(namespaces) == 0:
		return nil, ipam.BadInput(fmt.Errorf("--pod: %q has no namespace", pod), "give NAMESPACE/NAME, or add -n NAMESPACE")
	}
	var names []string
	for _, namespace := range namespaces {
		names = append(names, namespace+"/"+pod)
	}
	return names, nil
}

// overrides are the flags that replace fields of the policy. A flag that is not given
// leaves its field as it is. None of them changes a rule of the policy.
type overrides struct {
	flags *pflag.FlagSet

	dryRun          bool
	gracePeriod     time.Duration
	minAge          time.Duration
	releaseRestored bool
}

// add adds the flags to a command.
func (o *overrides) add(flags *pflag.FlagSet) {
	o.addTerms(flags)
	flags.BoolVar(&o.dryRun, "dry-run", true, "only show what would be released; --dry-run=false releases; both override the policy")
	flags.BoolVar(&o.releaseRestored, "release-restored", false, "also release what a restore put back, before the policy's journal.restoreHold has passed")
}

// addTerms adds the flags with which a command that releases nothing answers "what if".
func (o *overrides) addTerms(flags *pflag.FlagSet) {
	o.flags = flags
	flags.DurationVar(&o.gracePeriod, "grace-period", 0, "use this `DURATION` in place of the policy's gracePeriod, but not of a rule's")
	flags.DurationVar(&o.minAge, "min-age", 0, "use this `DURATION` in place of the policy's minAge, but not of a rule's")
}

// check returns the mistakes in the flags.
func (o *overrides) check() error {
	if o.gracePeriod < 0 {
		return ipam.BadInput(fmt.Errorf("--grace-period: %v is negative", o.gracePeriod), "give one such as 15m")
	}
	if o.minAge < 0 {
		return ipam.BadInput(fmt.Errorf("--min-age: %v is negative", o.minAge), "give one such as 5m, or 0s")
	}
	return nil
}

// termNames are the flags by which a run decides, besides the policy.
var termNames = []string{"grace-period", "min-age", "release-restored", "unsafe-ignore-limit", "accept-new-store"}

// apply changes the policy.
func (o *overrides) apply(p *policy.Policy) {
	if o.flags.Changed("dry-run") {
		p.DryRun = &o.dryRun
	}
	if o.flags.Changed("grace-period") {
		p.GracePeriod = &policy.Duration{Duration: o.gracePeriod}
	}
	if o.flags.Changed("min-age") {
		p.MinAge = &policy.Duration{Duration: o.minAge}
	}
	if o.releaseRestored {
		p.Journal.RestoreHold = &policy.Duration{}
	}
}

// filterNames are the flags of filterFlags that narrow a run.
var filterNames = []string{"namespace", "exclude-namespace", "pod", "node", "pool", "ip", "backend"}

// runCommand returns the words of a run on the same target, with the same policy and terms, and with more of
// the flags if they were given. On a cluster, a run that writes requires the context.
func runCommand(w ioStreams, f commandFlags, run report.RunInfo, more ...string) []string {
	words := append(strings.Fields(w.name()), "run")
	names := []string{"kubeconfig", "state-namespace", "policy"}
	if f.target.scope() == plugin.Node {
		words[len(words)-1] = "node"
		names = []string{"node-name", "state-dir", "runtime-endpoint", "runtime-config", "pods", "kubeconfig", "context", "policy"}
	} else if run.Context != "" {
		words = append(words, "--context", run.Context)
	}
	words = append(append(words, run.ClientFlags...), given(f.flags, append(names, more...)...)...)
	return append(words, strings.Fields(joinFlags(f.flags, termNames...))...)
}

// given returns those of the flags that were given, as words: the flag, then its value.
func given(flags *pflag.FlagSet, names ...string) (words []string) {
	for _, name := range names {
		flag := flags.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		} else if d, err := time.ParseDuration(values[0]); err == nil && flag.Value.Type() == "duration" {
			values[0] = policy.Duration{Duration: d}.String()
		}
		for _, value := range values {
			words = append(words, "--"+name, value)
		}
	}
	return words
}

// joinFlags returns those of the flags that were given as they are typed, those for yes or no without a value.
func joinFlags(flags *pflag.FlagSet, names ...string) string {
	var words []string
	for flag := range slices.Chunk(given(flags, names...), 2) {
		words = append(words, strings.TrimSuffix(strings.Join(flag, "="), "=true"))
	}
	return strings.Join(words, " ")
}
