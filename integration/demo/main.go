// Demo shows an outage that an operator reported (a node crashes, its pods' addresses stay
// reserved, a pool of five runs dry, new pods hang) on a real etcd, a real API server and the real
// whereabouts plugin, and ends it with ip-reaper. It needs no cluster and no root, takes under half
// a minute, and leaves nothing behind, even when interrupted.
//
// With KEEP in the environment, it ends by letting two more pods vanish, says what to type, and keeps
// the API server until it is interrupted.
//
// It exits with 0 only if every step behaved as expected.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// limit ends a demo that hangs.
const limit = 3 * time.Minute

func main() {
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal, a second one ends the program immediately. What it started is removed
	// even then.
	context.AfterFunc(interrupted, stop)
	ctx, cancel := context.WithTimeout(interrupted, limit)
	defer cancel()
	var keep <-chan struct{}
	if os.Getenv("KEEP") != "" {
		keep = interrupted.Done()
	}
	reaper, err := reap.New()
	if err == nil {
		err = run(ctx, os.Stdout, reaper, keep)
	}
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		fmt.Fprintf(os.Stderr, "demo: interrupted: %v\n", err)
		os.Exit(reap.ExitSignal)
	case err != nil:
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}
