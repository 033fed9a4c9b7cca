package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

const explainAbout = `explain shows why a run would keep or release an address, or the addresses of a
pod or a node: which stores hold it, which rule matched and on what evidence,
when it is due, and what would change that. Of what nothing uses, it shows which
of the last runs released it.

It also tells which networks a hanging pod waits for, and what its events say.
Of these networks, and of a pool, a network, its attachment or a CIDR, it shows
how full they are, how much has leaked and why, what would free it, and which
pods wait for it. It is read-only.
`

const explainExamples = `  # Why is this address kept or released?
  %[1]s explain%[2]s 10.0.0.7

  # The addresses of a pod, and of a node
  %[1]s explain%[2]s shop/web-0
  %[1]s explain%[2]s pod/web-0 -n shop
  %[1]s explain%[2]s node/worker-17

  # Why is this network or this pool full?
  %[1]s explain%[2]s 10.0.0.0/24
  %[1]s explain%[2]s pool/kube-system/10.0.0.0-24
  %[1]s explain%[2]s shop/vlan-100`

const explainFiles = `

  # From a dump
  %[1]s explain 10.0.0.7 --from dump.json`

func newExplain(w ioStreams, at target) *cobra.Command {
	var f lookFlags
	f.target = at
	cmd := &cobra.Command{
		Use:     "explain ADDRESS | CIDR | [NAMESPACE/]NAME | node/NAME | pool/NAME",
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

// mostAsked is of how many pods it is read what they ask for.
const mostAsked = 10

// askingOf returns what pods ask for. What is not read, the report warns of.
func askingOf(ctx context.Context, cluster census.Cluster, found *report.Report, pods []ipam.PodRef) (asking []report.Asking) {
	c, ok := cluster.(asker)
	if !ok {
		return nil
	}
	if more := len(pods) - mostAsked; more > 0 {
		pods = pods[:mostAsked]
		found.Warnings = append(found.Warnings, fmt.Sprintf("what %s may wait for was not read", printable.Counted(more, "more pod")))
	}
	for _, pod := range pods {
		named, err := c.Asking(ctx, pod.Namespace, pod.Name)
		if err != nil {
			found.Warnings = append(found.Warnings, "what the pod waits for is unknown: "+oneLine(err))
		}
		asking = append(asking, named...)
	}
	return asking
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
	var conn connection
	f.opened = &conn
	found, cluster, lookErr := look(ctx, w, f, false)
	if found == nil {
		return lookErr
	}
	found.Result.ExitCode, found.Result.Error = exitCode(ctx, lookErr), oneLine(lookErr)
	answer := func() (report.Explanation, error) {
		asking := askingOf(ctx, cluster, found, question.PodsIn(*found))
		if len(f.from) > 0 { // it is about what hangs
			asking = slices.DeleteFunc(asking, func(a report.Asking) bool {
				return !a.Waits && !a.Restart && a.Deletion == nil && len(a.Events) == 0
			})
		}
		return report.Explain(*found, question, asking, runCommand(w, f.commandFlags, found.Run))
	}
	x, err := answer()
	if x.Question.Pool != question.Pool { // a name is that of a pool, for which other pods may wait
		question = x.Question
		x, err = answer()
	}
	addLastRelease(ctx, conn, &x)
	if err != nil && x.LastRelease == nil {
		return errors.Join(lookErr, err)
	}
	return errors.Join(lookErr, print.WriteExplanation(w.stdout, f.output, w.width(), x))
}

// mostJournals is in how many journals a released address is looked for.
const mostJournals = 50

// addLastRelease adds which of the last runs released the address in question, or those of the pod, if
// nothing uses them. A warning says that the journals cannot be read or, if no store has them, that files
// have none: then the connection is zero.
func addLastRelease(ctx context.Context, conn connection, x *report.Explanation) {
	used := len(x.Claims)+len(x.Asking) > 0 || slices.ContainsFunc(x.Found, func(e report.Explained) bool { return e.Verdict == judge.InUse })
	if q := x.Question; q.Address+q.Pod+q.Name == "" || used || conn.journals == nil && len(x.Found) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, conn.Timeout)
	defer cancel()
	err := errors.New("files have no journals")
	if conn.journals != nil {
		x.LastRelease, err = lastRelease(ctx, conn, x.Question)
	}
	if err != nil {
		x.Warnings = append(x.Warnings, printable.Shorten("whether a run released it is unknown: "+oneLine(err), printable.MaxText))
	}
}

// lastRelease returns the latest run whose journal has what is asked about, with its allocations; nil if
// none has. With an error, it has what could be read.
func lastRelease(ctx context.Context, conn connection, q report.Question) (*journal.PastRun, error) {
	runs, unread, err := conn.journals.List(ctx)
	for _, text := range unread {
		err = errors.Join(err, errors.New(text))
	}
	for _, past := range runs[:min(len(runs), mostJournals)] {
		read, damage := conn.journals.Read(ctx, past.ID)
		if damage != nil && !errors.Is(damage, journal.ErrNone) { // another run may have pruned it
			err = errors.Join(err, damage)
		}
		if ctx.Err() != nil {
			break
		}
		run := journal.PastOf(read)
		run.Journal = nil
		run.Entries = slices.DeleteFunc(run.Entries, func(e journal.RecordedEntry) bool { return !q.Recorded(e) })
		if len(run.Entries) == 0 {
			continue
		}
		memory, unread := conn.Ledgers.Load(ctx)
		for _, one := range withResults([]journal.PastRun{run}, memory.Runs) {
			if one.ID == run.ID {
				return &one, errors.Join(err, unread)
			}
		}
	}
	return nil, err
}
