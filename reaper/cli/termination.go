package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// maxMessage is the largest size of the error in a termination message, in bytes. Each can take six in JSON,
// and the kubelet keeps 4096 of the message.
const maxMessage = 500

// A terminationMessage is the summary that kubectl describe shows for a finished pod.
type terminationMessage struct {
	ID       string            `json:"id"`
	ExitCode int               `json:"exitCode"`
	DryRun   bool              `json:"dryRun"`
	Leaked   *report.Leaked    `json:"leaked"`   // addresses
	Summary  report.Counts     `json:"summary"`  // allocations
	Backends map[string]string `json:"backends"` // status by name
	Error    string            `json:"error,omitempty"`
}

// writeTermination writes one line of JSON to the file if it exists. It never creates
// the file, because the kubelet does.
func writeTermination(file string, r report.Report, cause error) error {
	message := terminationMessage{ID: r.Run.ID, ExitCode: r.Result.ExitCode, DryRun: r.Run.DryRun, Leaked: r.Leaked, Summary: r.Summary, Backends: map[string]string{}}
	for _, b := range r.Backends {
		message.Backends[b.Name] = b.Status.String()
	}
	if cause != nil {
		message.Error = printable.Shorten(printable.Plain(cause.Error()), maxMessage)
	}
	line, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("termination message: %w", err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("termination message: %w", err)
	}
	_, err = printable.JSON(f).Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
