// Command scale measures on a real API server how ip-reaper and its peers perform with a large
// cluster, and what their work costs.
//
//	go run ./bench/scale [-pods 10000,20000,40000,75000] [-parts plan,run,whereabouts,guest,calico,calico-etcd,calico-peers] [-turns 3]
//
// It writes pods, nodes, pools and overlapping reservations into etcd in the API server's own form,
// while the API server is down. Each pod has 5 KB, one entry in an IPPool and one overlapping
// reservation, and a network-status as Multus writes it. Of entries and reservations, another tenth
// is stale. The pods are in 20 namespaces. A pool has the range of a /16 and up to 5,000 entries, and
// there are no network attachments. Then all programs take turns on the same state, which is restored
// and checked after each:
//
//   - ip-reaper, as the shipped account, which plans or releases. It plans by the installed policy,
//     and by a policy file, whose verdicts it compares with those by the installed one;
//   - with the part whereabouts, the reconciler of Whereabouts, with its throttle, without
//     it, and without it and with a map instead of its quadratic scan.
//
// With the parts calico and calico-etcd, it does the same with Calico, in either datastore. Each
// pod has an address and a handle, and of both, another tenth is stale. Each block has 60 of 64
// addresses allocated, so that 272,728 pods have 300,000 addresses in 5,000 blocks, one per node.
// These pods have 2.5 KB: etcd has no room for so many of 5 KB. With calico-peers as well, two more
// take turns:
//
//   - calicoctl: lock, check, release from the report, unlock;
//   - kube-controllers, until everything is released or -limit is over.
//
// With the part guest, another account makes 50 small requests a second, with and without a
// concurrent run of ip-reaper.
//
// With -rate, ip-reaper talks to a proxy that passes so many requests per second and answers the
// others with 429 and Retry-After, as API priority and fairness does.
//
// The table has the medians of the turns. A process that takes longer than -limit is stopped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "scale:", err)
		stop()
		os.Exit(1)
	}
}

// options has the values of the flags.
type options struct {
	sizes       []size
	parts       map[string]bool
	turns       int
	binary      string // of ip-reaper
	concurrency int
	limit       time.Duration // for each process
	rate        int           // requests of ip-reaper per second; 0 means that there is no limit
}

// run is the program.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	var all []measured
	for _, s := range o.sizes {
		m, err := measureSize(ctx, o, s, out)
		all = append(all, m)
		if err != nil {
			return errors.Join(fmt.Errorf("%d pods: %w", s, err), table(out, all))
		}
	}
	return table(out, all)
}

// parse reads the flags.
func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	pods := flags.String("pods", "10000,20000,40000,75000", "numbers of pods, one cluster each")
	some := flags.String("parts", "plan,run,whereabouts,guest", "what is measured")
	flags.IntVar(&o.turns, "turns", 3, "how often each program has its turn")
	flags.StringVar(&o.binary, "ip-reaper", "", "the `program` to measure (default integration/bin/ip-reaper)")
	flags.IntVar(&o.concurrency, "concurrency", 32, "what ip-reaper is told")
	flags.DurationVar(&o.limit, "limit", 10*time.Minute, "the longest that a process may take")
	flags.IntVar(&o.rate, "rate", 0, "how many requests of ip-reaper are answered per second (default all)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.turns < 1 || o.concurrency < 1 || o.limit <= 0 || o.rate < 0 {
		return o, errors.New("-turns, -concurrency and -limit must be positive, and -rate must not be negative")
	}
	if o.parts, err = parts(*some); err != nil {
		return o, err
	}
	if o.sizes, err = sizes(*pods, most(o.parts)); err != nil {
		return o, err
	}
	if o.binary == "" {
		o.binary, err = assets.Path("ip-reaper")
	}
	return o, err
}

// measureSize measures all ways with one size. With an error, it returns the measurements so far.
func measureSize(ctx context.Context, o options, s size, out io.Writer) (m measured, err error) {
	m.size = s
	for _, measure := range measurements(o.parts) {
		if err := measure(ctx, o, s, &m, out); err != nil {
			return m, err
		}
	}
	return m, nil
}

// measurePools measures the ways of Whereabouts.
func measurePools(ctx context.Context, o options, s size, m *measured, out io.Writer) (err error) {
	g, err := openPools(ctx, o, s, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	return g.measureWays(ctx, g.ways(), g, m, out)
}
