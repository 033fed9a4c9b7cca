// Command calls compares on a real API server what it takes to release addresses of Calico.
//
//	go run ./bench/calls calico [-leaked 1000] [-live 100] [-nodes 10] [-wait 60s]
//
// It has ip-reaper, calicoctl and kube-controllers release the same leaks of
// a real datastore of either kind. A proxy counts the requests to the API server, and
// etcd counts its operations. Each of the programs runs as it is by default;
// kube-controllers, which are slow, for no longer than -wait. integration/bench/scale
// measures Whereabouts.
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
	if len(args) == 0 || args[0] != "calico" {
		return errors.New("name a store: calico")
	}
	return runBlocks(ctx, args[1:], out)
}
