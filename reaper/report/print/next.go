package print

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// nextOf returns what to do after a run, and the commands to type. again repeats the run
// (Options.Run).
func nextOf(r report.Report, again []string) []judge.Remedy {
	next := []judge.Remedy{}
	// A run in a cluster is repeated by what started it, not by a person who types.
	repeatable := len(again) > 0 && r.Run.Context+r.Run.Node != "" && !piped(r.Run.Policy.File)
	if found := r.Leaked; found != nil {
		if repeatable && found.Due > 0 && len(r.Result.Refused) == 0 {
			next = append(next, judge.Remedy{Says: "Release what is due", Command: typed(again) + " --dry-run=false"})
		}
		if repeatable && found.Waiting > 0 && !r.Run.Memory {
			next = append(next, judge.Remedy{Says: "Remember what waits, so that its grace period can end", Command: typed(again) + " --remember"})
		}
		if explain := explainOn(r.Run); len(found.HeldBy) > 0 && explain != "" {
			if i := slices.IndexFunc(r.Entries, func(e report.Entry) bool {
				return e.Leaked && e.IP != "" && e.Verdict == judge.Held && e.Reason == found.HeldBy[0].Reason
			}); i >= 0 {
				says := fmt.Sprintf("Ask why an address is held, here %s (%s)", r.Entries[i].IP, found.HeldBy[0].Reason.Words())
				next = append(next, judge.Remedy{Says: says, Command: explain + " " + quote(r.Entries[i].IP)})
			}
		}
	}
	if r.Summary.Released > 0 {
		next = append(next, judge.Remedy{Says: "Undo the releases of this run", Command: undoOn(r.Run)})
	}
	return next
}

// explainOn returns a command that explains the address appended to it, where the run was;
// nothing for files.
func explainOn(run report.RunInfo) string {
	if run.Place() == "" {
		return ""
	}
	return strings.Join(wordsOn("explain", run), " ")
}

// typed returns words as a person types them.
func typed(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " ")
}
