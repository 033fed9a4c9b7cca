// Command storm has pods come and go in a real cluster, with real ADDs and DELs
// and crashes that leave addresses behind, in a pool that is too small for
// leaks, while ip-reaper runs over and over without grace. Half of the pods come
// back under their name. All the time it is checked that every pod that exists
// has what its ADD got; at the end, that nothing else is left. The same storm
// without ip-reaper is the control.
//
//	go run ./bench/storm [-for 60s] [-ipam whereabouts|calico|both] [-workers 6] [-reaper=false] [-control=false]
//
// It exits with 1 if a pod lacked anything that the plugin did not lose itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/bench/program"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

func main() { program.Main("storm", run) }

// errViolated says that a storm found what must not be.
var errViolated = errors.New("a pod lacked what its ADD got, or something was left: see above")

// run is the program.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	var size size
	flags := flag.NewFlagSet("storm", flag.ContinueOnError)
	flags.DurationVar(&size.length, "for", time.Minute, "how long pods come and go")
	flags.IntVar(&size.workers, "workers", 6, "how many of them at a time")
	flags.IntVar(&size.bits, "bits", 27, "`prefix` length of the addresses that they get")
	flags.Uint64Var(&size.seed, "seed", 1, "of what the workers decide")
	which := flags.String("ipam", "both", "whereabouts, calico or both")
	reaping := flags.Bool("reaper", true, "run the storm with the reaper")
	control := flags.Bool("control", true, "run the storm without it")
	binary := flags.String("ip-reaper", "", "the `program` to run (default integration/bin/ip-reaper)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := size.check(); err != nil {
		return err
	}
	ipams := map[string][]string{"whereabouts": {"whereabouts"}, "calico": {"calico"}, "both": {"whereabouts", "calico"}}[*which]
	if ipams == nil {
		return fmt.Errorf("-ipam %q: want whereabouts, calico or both", *which)
	}
	program := &reap.Reaper{Path: *binary}
	if *binary == "" {
		if program, err = reap.New(); err != nil {
			return err
		}
	}
	crds, err := calico.CRDs(ctx)
	if err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{CRDs: []string{crds}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	clean, err := reaper(c, program)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d workers, %d pods each, for %v in a /%d, seed %d\n\n", size.workers, residents, size.length, size.bits, size.seed)
	var results []result
	for _, name := range ipams {
		for _, way := range []struct {
			wanted bool
			clean  func(context.Context) (reap.Result, error)
		}{{*reaping, clean}, {*control, nil}} {
			if !way.wanted {
				continue
			}
			r, err := play(ctx, c, name, size, way.clean)
			if err != nil {
				return err
			}
			results = append(results, r)
		}
	}
	if err := tell(out, results); err != nil {
		return err
	}
	for _, r := range results {
		if len(r.violations) > 0 {
			return errViolated
		}
	}
	return nil
}

// play is one storm, on a cluster that it empties first.
func play(ctx context.Context, c *cluster.Cluster, name string, size size,
	clean func(context.Context) (reap.Result, error),
) (result, error) {
	if err := c.Reset(ctx); err != nil {
		return result{}, err
	}
	// Calico's data are there in any case: a reaper that finds its resources
	// defined, and nothing else, does not believe that.
	d, err := calico.OnKubernetes(ctx, c)
	if err != nil {
		return result{}, err
	}
	var i ipam = newWhereabouts(c, size)
	if name == "calico" {
		i = newCalico(d, size.bits)
	}
	if clean == nil {
		name += ", no reaper"
	}
	t, err := newStorm(c, i, size, clean).run(ctx)
	if err != nil {
		return result{}, fmt.Errorf("%s: %w", name, err)
	}
	return result{name, t}, nil
}
