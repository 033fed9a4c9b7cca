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

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
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

	recording *kube.Recording // of the lists that are read; nil for none
	opened    *connection     // gets what was looked at, unless that is files; may be nil
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
}

// check returns the mistakes in the flags that can be found without a cluster.
func (f lookFlags) check() error {
	if !slices.Contains(print.LookFormats(), f.output) {
		return ipam.BadInput(fmt.Errorf("--output: unknown format %q", f.output), "use "+listOf(print.LookFormats()))
	}
	for _, name := range append([]string{"kubeconfig", "context", "state-namespace"}, clientFlags...) {
		if len(f.from) > 0 && typed(f.flags.Lookup(name)) {
			return ipam.BadInput(fmt.Errorf("--from and --%s contradict each other: files are read, and nothing is contacted", name), "give one of them")
		}
	}
	if err := f.overrides.check(); err != nil {
		return err
	}
	return f.commandFlags.check()
}

// look makes a dry run that writes nothing anywhere. Its report has every allocation; a brief one counts
// those in use, and leaves them out. It is nil if there was an error before the first listing, or a
// mistake in what the user gave; otherwise it is true with any error. A plan that a limit refuses, or
// that is for another store, is not an error. The cluster is the one that was looked at; nil without pods.
func look(ctx context.Context, w ioStreams, f lookFlags, brief bool) (*report.Report, census.Cluster, error) {
	if err := f.check(); err != nil {
		return nil, nil, err
	}
	backends := w.backends // files may be of any
	if len(f.from) == 0 {
		backends = plugin.Of(w.backends, f.target.scope())
	}
	selection, err := f.filters.selection(backends)
	if err != nil {
		return nil, nil, err
	}
	p, err := loadPolicy(ctx, w, f.policyFile)
	if err != nil {
		return nil, nil, err
	}
	if len(f.from) > 0 {
		return offline(ctx, w, reaper.Options{Policy: p, PolicyFile: f.policyFile, Selection: selection, Brief: brief}, f.from, f.overrides.apply)
	}
	conn, err := f.connect(ctx, w, false, p, newLogger(w, f.logFormat, f.verbose))
	if err != nil {
		return nil, nil, err
	}
	defer conn.close()
	if f.opened != nil {
		*f.opened = conn
	}
	o := conn.Options
	f.overrides.apply(&o.Policy)
	if f.recording != nil {
		kube.Record(conn.client, f.recording)
	}
	dryRun := true
	o.Policy.DryRun = &dryRun
	o.Selection, o.Brief, o.Shown, o.Overrides = selection, brief, f.shown(w), joinFlags(f.flags, termNames...)
	if w.terminal {
		o.Progress = w.progress
	}
	found, err := reaper.Run(ctx, o)
	if limit := (*judge.LimitError)(nil); errors.As(err, &limit) || errors.Is(err, reaper.ErrAnotherStore) {
		err = nil
	}
	if isMistake(err) {
		return nil, nil, err
	}
	return &found, o.Cluster, err
}

// offline returns what look does, for files. The options have the policy, which that of a dump replaces
// unless it is from a file, and how to report. override changes the one that is used.
func offline(ctx context.Context, w ioStreams, o reaper.Options, files []string, override func(*policy.Policy)) (*report.Report, census.Cluster, error) {
	read, err := dump.Read(ctx, w.stdin, files)
	if err != nil {
		return nil, nil, err
	}
	if used := read.Policy; used.Installed != "" && o.PolicyFile == "" {
		o.PolicyInstalled = used.Installed
		if o.Policy, err = policy.Load([]byte(used.Text), plugin.Known(w.backends)); err != nil {
			return nil, nil, ipam.BadInput(fmt.Errorf("policy ConfigMap %s: %w", used.Installed, err), "use the version of ip-reaper that dumped it, or give a policy with --policy FILE")
		}
	}
	override(&o.Policy)
	at := apiServer{config: &rest.Config{Host: "http://files", Transport: read.Server}}
	c, _, err := at.clients(defaultConcurrency, requestTimeout)
	if err != nil {
		return nil, nil, err
	}
	plugins := plugin.Of(w.backends, plugin.Cluster)
	env := plugin.Env{
		Config:      at.config,
		Client:      c.raw,
		Files:       read.Documents,
		Getenv:      func(string) string { return "" },
		Concurrency: defaultConcurrency,
	}
	if o.Backends, o.Protectors, err = plugin.Open(ctx, plugins, env, o.Policy); err != nil {
		return nil, nil, err
	}
	reads := plugin.Reads(plugins, o.Policy)
	ignored := slices.DeleteFunc(slices.Clone(read.Documents), func(d ipam.Document) bool { return !d.More && reads(d) })
	o.ID, o.Version = newID(), buildVersion()
	o.Now, o.Logger = func() time.Time { return cmp.Or(read.Time, time.Now()) }, slog.New(slog.DiscardHandler)
	o.Undated = read.Time.IsZero()
	o.Files = &reaper.Files{Whole: !o.Undated && read.Partial == ""}
	if read.HasPods {
		o.Cluster = state.NewCluster(c.core, c.apps, c.raw)
		o.HasNamespace = func(context.Context, string) census.Presence { return census.Absent } // the files are all there is
	}
	if len(read.Ledger) > 0 {
		if o.Files.Remembered, err = ledger.Decode(read.Ledger); err != nil {
			return nil, nil, ipam.BadInput(errors.New("the ledger in the dump cannot be read: it is damaged, or of another version of ip-reaper"),
				"use the version that made the dump, or dump the cluster again")
		}
		if len(files) > 1 {
			o.Caveats = append(o.Caveats, "the dump is not the only file: this assumes that the pods were listed last")
		}
	}
	if read.Partial != "" {
		o.Caveats = append(o.Caveats, "the dump is not whole: "+read.Partial)
	}
	dryRun := true
	o.Policy.DryRun = &dryRun
	found, err := reaper.Run(ctx, o)
	if isMistake(err) {
		return nil, nil, err
	}
	if len(found.Backends) == 0 {
		lacks := "the files have " + printable.Counted(read.Pods, "pod") + ", and no object of a store that ip-reaper knows"
		return nil, nil, ipam.BadInput(errors.New(strings.Join(append([]string{lacks}, dump.Ignored(ignored)...), "; ")), dump.Hint)
	}
	found.Warnings = slices.Concat(dump.Ignored(ignored), found.Warnings)
	return &found, o.Cluster, err
}
