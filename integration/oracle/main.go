// Oracle runs two builds of ip-reaper, one after the other, in equal random worlds on a real API
// server, and compares what they report, what they leave in the stores and what they ask of the
// API server. It is for changes after which the program has to do what it did before:
//
//	go run ./oracle -old /tmp/before -new bin/ip-reaper -worlds 20 -seed 1
//
// It prints what differs, and exits with 1 then.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

func main() {
	before := flag.String("old", "", "the `program` from before the change")
	after := flag.String("new", "bin/ip-reaper", "the `program` with the change")
	worlds := flag.Int("worlds", 20, "how many worlds")
	seed := flag.Uint64("seed", 1, "the `number` of the first world")
	flag.Parse()
	if *before == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), *before, *after, *seed, *worlds); err != nil {
		fmt.Fprintf(os.Stderr, "oracle: %v\n", err)
		os.Exit(1)
	}
}

// run compares the programs. Its error says how many worlds differ.
func run(ctx context.Context, before, after string, seed uint64, worlds int) (err error) {
	b, err := start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Stop()) }()
	defer b.proxy.Stop()
	differ := 0
	for n := range worlds {
		w := newWorld(seed + uint64(n))
		var both [2]observation
		for i, program := range []string{before, after} {
			if both[i], err = b.observe(ctx, program, w); err != nil {
				return fmt.Errorf("%s in world %d: %w", program, w.seed, err)
			}
		}
		if diff := compare(both[0], both[1]); diff != "" {
			differ++
			fmt.Printf("world %d differs (-old +new):\n%s\npolicy:\n%s\n", w.seed, diff, w.policy)
			continue
		}
		fmt.Printf("world %d: the same: %v\n", w.seed, both[0].reasons)
	}
	if differ > 0 {
		return fmt.Errorf("%d of %d worlds differ", differ, worlds)
	}
	return nil
}

// start starts an API server with the resources of all stores, and a proxy before it.
func start(ctx context.Context) (*bench, error) {
	dir, err := os.MkdirTemp("", "ip-reaper-oracle-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary folder
	attachments, err := cluster.NetworkAttachmentCRD()
	if err != nil {
		return nil, err
	}
	reserved, err := cluster.ReservedIPCRD()
	if err != nil {
		return nil, err
	}
	if err := calico.LooseCRDs(ctx, dir); err != nil {
		return nil, err
	}
	c, err := cluster.Start(ctx, cluster.Options{
		CRDs: []string{attachments, reserved, dir}, Flags: map[string]string{"watch-cache": "false"},
	})
	if err != nil {
		return nil, err
	}
	p, err := proxy.Start(c.Config)
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	kubeconfig, err := c.KubeconfigFor(p.Config(c.Config))
	return &bench{c, p, kubeconfig}, err
}
