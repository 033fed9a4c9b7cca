// Command adds measures how many ADDs a minute the real Whereabouts plugin does in a
// pool whose first addresses have leaked: before a run of ip-reaper, and after it.
//
//	go run ./bench/adds [-leaked 20] [-for 20s] [-min-age 5m]
//
// The run has no grace period. The reservations of the leak are new, so minAge decides
// when they go. If a run releases the entries of the pool and keeps the reservations,
// each ADD tries every leaked address before it finds one that is free.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/bench/program"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

func main() { program.Main("adds", run) }

// run is the program.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("adds", flag.ContinueOnError)
	leaked := flags.Int("leaked", 20, "addresses at the beginning of the pool that have leaked")
	long := flags.Duration("for", 20*time.Second, "how long ADDs are measured, each time")
	minAge := flags.Duration("min-age", 5*time.Minute, "minAge of the policy")
	if err := flags.Parse(args); err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	m, err := newMeasure(ctx, c, *long)
	if err != nil {
		return err
	}
	if err := m.leak(ctx, *leaked); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "when\tADDs\tfailed\tADDs a minute\tentries left\treservations left")
	tell := func(when string, n rate) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.0f\t%d\t%d\n", when, n.done, n.failed, n.aMinute(), n.entries, n.reservations)
	}
	before, err := m.adds(ctx)
	if err != nil {
		return err
	}
	tell(fmt.Sprintf("%d addresses have leaked", *leaked), before)
	if err := m.reap(ctx, *minAge); err != nil {
		return err
	}
	after, err := m.adds(ctx)
	if err != nil {
		return err
	}
	tell("after a run", after)
	return w.Flush()
}
