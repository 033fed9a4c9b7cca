package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// addEvery adds --every to a command.
func (f *runFlags) addEvery(flags *pflag.FlagSet) {
	flags.DurationVar(&f.every, "every", 0, "run again and again, this `DURATION` and up to a tenth more after the end of the last run, until the program is stopped; by default, run once")
}

// checkEvery returns the mistakes in --every.
func (f runFlags) checkEvery() error {
	switch {
	case f.every < 0:
		return ipam.BadInput(fmt.Errorf("--every: %v is negative", f.every), "give one such as 15m")
	case f.every > 0 && f.wait.on:
		return ipam.BadInput(errors.New("--every and --wait contradict each other"), "with --every, the next run releases what is due then")
	case f.every > 0 && f.journal != "":
		return ipam.BadInput(errors.New("--every: --journal names one file, and each run has a journal of its own"), "leave out --journal: --state-dir has the journals")
	}
	return nil
}

// A turnError is the error of the last of several runs. The user has been told of it.
type turnError struct {
	error
	code int // the exit code
}

// Unwrap returns the error.
func (e *turnError) Unwrap() error { return e.error }

// turns runs the command once or, with --every, until ctx ends. Each run opens everything
// anew, also the policy. A run that fails is told of, and the next one tries again. But if the
// first one finds a mistake in what the user gave, turns ends: nobody may look at the log.
func (f runFlags) turns(ctx context.Context, w ioStreams) error {
	if f.every == 0 {
		return reap(ctx, w, f)
	}
	wait := w.sleep
	if wait == nil {
		wait = sleep
	}
	for first := true; ; first = false {
		err := reap(ctx, w, f)
		if first && isUsage(err) {
			return err
		}
		code := exitCode(ctx, err)
		if err != nil {
			printError(w, told(ctx, err))
			err = &turnError{err, code}
		}
		if ctx.Err() != nil || wait(ctx, jittered(f.every)) != nil {
			return err
		}
	}
}

// isUsage reports whether an error is a mistake in what the user gave.
func isUsage(err error) bool {
	var usage *ipam.InputError
	var invalid *policy.Error
	return errors.As(err, &usage) || errors.As(err, &invalid)
}

// jittered returns a duration that is longer by a tenth at most, so that the nodes of a cluster
// do not run at the same time. It is never shorter: where the grace period is as long, what one
// run saw first is due in the next one.
func jittered(d time.Duration) time.Duration { return d + rand.N(d/10+1) }
