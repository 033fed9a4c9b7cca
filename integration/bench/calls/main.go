// Command calls measures on a real API server what it takes to release addresses.
//
//	go run ./bench/calls whereabouts [-pools 4] [-live 1000] [-stale 1000] [-concurrency 32]
//	go run ./bench/calls calico [-leaked 1000] [-live 100] [-nodes 10] [-wait 60s]
//
// With whereabouts, it measures one run of ip-reaper: which requests it makes, how long
// it takes, how much memory it needs. As many overlapping-range reservations go with the
// entries of the pools. It runs twice on the same state: through a proxy that counts, and
// directly for the time and the memory.
//
// With calico, it compares ip-reaper, calicoctl and kube-controllers on the same state of
// a real datastore of either kind. A proxy counts the requests to the API server, and
// etcd counts its operations. Each of the programs runs as it is by default;
// kube-controllers, which are slow, for no longer than -wait.
package main

import (
	"context"
	"errors"
	"io"

	"github.com/ip-reaper/ip-reaper/integration/bench/program"
)

func main() { program.Main("calls", run) }

// run is the program.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "whereabouts":
			return runPools(ctx, args[1:], out)
		case "calico":
			return runBlocks(ctx, args[1:], out)
		}
	}
	return errors.New("name a store: whereabouts or calico")
}
