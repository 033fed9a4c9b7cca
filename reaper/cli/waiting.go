package cli

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// A waitFlag is the value of --wait: whether a run waits for grace periods, and for how
// long at most. Its zero value does not wait.
type waitFlag struct {
	on  bool
	max time.Duration // 0: until the last grace period that the first round found
}

// add adds the flag to a command. Without a value, it is "true".
func (f *waitFlag) add(flags *pflag.FlagSet) {
	flags.Var(f, "wait", "sleep until the next grace period ends, then run again; a `DURATION` limits the sleep in all; --timeout does not count it")
	flags.Lookup("wait").NoOptDefVal = "true"
}

// Set implements pflag.Value. It takes a boolean or a positive duration.
func (f *waitFlag) Set(text string) error {
	if on, err := strconv.ParseBool(text); err == nil {
		*f = waitFlag{on: on}
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("give a positive duration such as 2m, true or false")
	}
	*f = waitFlag{on: true, max: d}
	return nil
}

// String implements pflag.Value.
func (f *waitFlag) String() string {
	if f.max > 0 {
		return f.max.String()
	}
	return strconv.FormatBool(f.on)
}

// Type implements pflag.Value.
func (*waitFlag) Type() string { return "duration" }

// repeat calls run again and again until ctx ends; if that is between two runs, it returns nil.
// Each run opens everything again, including the policy. A run that fails is reported, and the next
// one tries again. But if the first one finds a mistake of the user, repeat ends: in the log it may
// go unseen.
func repeat(ctx context.Context, w ioStreams, every time.Duration, run func(context.Context) error) error {
	for first := true; ; first = false {
		err := run(ctx)
		if ctx.Err() != nil || first && isUsage(err) {
			return err
		}
		if err != nil {
			printError(w, err)
		}
		if w.sleep(ctx, jittered(every)) != nil {
			return nil
		}
	}
}

// jittered returns a duration that is longer by at most a tenth, so that the nodes of a cluster
// do not run at the same time. It is never shorter: if the grace period is as long, what one run
// saw first is due in the next one.
func jittered(d time.Duration) time.Duration { return d + rand.N(d/10+1) }
