// Package program is what the programs under integration have in common that
// measure and try.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Policy releases what is ownerless at once, however much it is: no grace period
// covers up for a mistake.
const Policy = `apiVersion: ip-reaper/v1alpha1
kind: ReapPolicy
dryRun: false
gracePeriod: 0s
minAge: 0s
limits: {maxFraction: 1}
`

// Main runs a program with its arguments until it ends or is interrupted, and ends
// the process with 1 if it fails. That it was asked for help is no failure.
func Main(name string, run func(ctx context.Context, args []string, out io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, name+":", err)
		stop()
		os.Exit(1)
	}
}
