package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// maxMessage is what the kubelet keeps of a termination message, in bytes.
const maxMessage = 4096

// A lastWord is the summary that kubectl describe shows of a finished pod.
type terminationMessage struct {
	ID       string            `json:"id"`
	ExitCode int               `json:"exitCode"`
	DryRun   bool              `json:"dryRun"`
	Summary  reaper.Counts     `json:"summary"`
	Backends map[string]string `json:"backends"` // status by name
	Error    string            `json:"error,omitempty"`
}

// writeTermination writes one JSON line to the file, if there is one: the
// kubelet makes it, and nowhere else should one appear.
func writeTermination(file string, r reaper.Report, code int, cause error) error {
	word := terminationMessage{ID: r.Run.ID, ExitCode: code, DryRun: r.Run.DryRun, Summary: r.Summary, Backends: map[string]string{}}
	for _, b := range r.Backends {
		word.Backends[b.Name] = b.Status.String()
	}
	line, err := json.Marshal(word)
	if err != nil {
		return fmt.Errorf("termination message: %w", err)
	}
	if cause != nil {
		// A byte of the error can take six in JSON.
		room := (maxMessage - len(line) - len(`,"error":""`) - 1) / 6
		word.Error = cause.Error()[:min(len(cause.Error()), max(0, room))]
		if line, err = json.Marshal(word); err != nil {
			return fmt.Errorf("termination message: %w", err)
		}
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("termination message: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
