package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/report"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

const statusAbout = `status says in one screen which networks run dry and which pods wait for them,
which nodes are not ready and what they hold, what leaked and what keeps it,
what the CronJob does, and which command helps most now. It is read-only.
`

const statusExamples = `  # What is wrong, and what do I do now?
  %[1]s status%[2]s

  # Look again every few seconds, until Ctrl-C
  %[1]s status%[2]s --watch`

const statusFiles = `

  # From a dump
  %[1]s status --from dump.json`

// statusFlags are the flags of the status command.
type statusFlags struct {
	lookFlags
	watch bool
}

func newStatus(w ioStreams, at target) *cobra.Command {
	var f statusFlags
	f.target = at
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Say in one screen what runs dry, what keeps it, and what to do",
		Long:    statusAbout,
		Example: examplesOf(w, at, statusExamples, statusFiles),
		Args:    noArgs,
		RunE:    withEnv(w, func(ctx context.Context, _ []string) error { return watchStatus(ctx, w, f) }),
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&f.watch, "watch", false, "print it anew every few seconds, until interrupted")
	return cmd
}

// betweenLooks is how long --watch waits.
const betweenLooks = 5 * time.Second

// watchStatus runs the command, with --watch again and again.
func watchStatus(ctx context.Context, w ioStreams, f statusFlags) error {
	for {
		err := lookOnce(ctx, w, f.lookFlags)
		if !f.watch || ctx.Err() != nil || isMistake(err) {
			return err
		}
		if err != nil { // it may be over by the next look
			_, _ = fmt.Fprintln(w.stderr, oneLine(err))
		}
		if w.sleep(ctx, betweenLooks) != nil {
			return nil
		}
		separator := "\n"
		if w.stdoutTerminal {
			separator = "\x1b[H\x1b[2J" // an empty screen
		}
		if _, err := io.WriteString(w.stdout, separator); err != nil {
			return err
		}
	}
}

// lookOnce looks, and prints what it found.
func lookOnce(ctx context.Context, w ioStreams, f lookFlags) error {
	var conn connection
	f.opened = &conn
	found, cluster, lookErr := look(ctx, w, f, false)
	if found == nil {
		return lookErr
	}
	o := print.Options{Format: f.output, Width: w.width(), Run: runCommand(w, f.commandFlags, found.Run, filterNames...)}
	o.Asking = askingOf(ctx, cluster, found, found.Waiting())
	return errors.Join(lookErr, print.WriteStatus(w.stdout, o, *found, schedulesOf(ctx, conn)))
}

// schedulesOf returns the CronJobs that start runs. The connection is zero for files.
func schedulesOf(ctx context.Context, conn connection) report.CronJobs {
	if conn.client == nil {
		return report.CronJobs{Unknown: "a dump does not say"}
	}
	ctx, cancel := context.WithTimeout(ctx, conn.Timeout)
	defer cancel()
	found, err := state.Schedules(ctx, conn.client, conn.StateNamespace, time.Now())
	if err != nil {
		return report.CronJobs{Unknown: oneLine(err)}
	}
	return report.CronJobs{Schedules: found}
}
