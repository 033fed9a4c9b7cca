package print

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// currentContext stands for the context that a run inside a cluster does not know. It is
// safe: a journal is found by the ID of its run, which no other cluster has.
const currentContext = `"$(kubectl config current-context)"`

// CommandOn returns a command on the journals, or on that of a run if its ID is known, ready to be
// pasted into an operator's shell.
func CommandOn(command string, run report.RunInfo) string {
	return strings.Join(appendFlag(wordsOn(command, run), "--run", run.ID), " ")
}

// undoOn returns the command that puts back what a run released.
func undoOn(run report.RunInfo) string { return CommandOn("restore", run) + " --dry-run=false" }

// wordsOn returns the words of a command where a run was, as they are typed: on the node, if
// the run was about a node.
//
// A run inside a cluster has a policy file that a workstation does not have, and a program
// that is not called as a plugin there. So its command leaves out the file, and names the
// plugin.
func wordsOn(command string, run report.RunInfo) []string {
	if run.Node != "" {
		return appendFlag([]string{run.Program, "node", command}, "--state-dir", run.StateDir)
	}
	words := []string{"kubectl ip-reaper", command, "--context", currentContext}
	if run.Context != "" {
		words = []string{run.Program, command, "--context", quote(run.Context)}
		words = appendFlag(words, "--kubeconfig", run.Kubeconfig)
		words = append(words, quoted(run.ClientFlags)...)
		if !piped(run.Policy.File) {
			words = appendFlag(words, "--policy", run.Policy.File)
		}
	}
	if run.StateNamespace == report.StateNamespace {
		return words
	}
	return appendFlag(words, "--state-namespace", run.StateNamespace)
}

// piped reports whether a file is a pipe: the shell where a command is pasted has another one.
func piped(file string) bool { return file == "-" || strings.HasPrefix(file, "/dev/") }

// appendFlag adds a flag, unless it has no value.
func appendFlag(words []string, flag, value string) []string {
	if value == "" {
		return words
	}
	return append(words, flag, quote(value))
}

// unquoted are the characters that mean themselves in every shell; the last one, where no word begins with it.
const unquoted = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+,="

// quote returns a text that a POSIX shell reads as one word.
func quote(text string) string {
	if text != "" && text[0] != '=' && strings.Trim(text, unquoted) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// nextOf returns what to do after a run, and the commands to type. again repeats the run
// (Options.Run).
func nextOf(r report.Report, again []string) []judge.Remedy {
	next := []judge.Remedy{}
	// A run in a cluster is repeated by what started it, not by a person who types.
	repeatable := len(again) > 0 && !r.Run.NoState && r.Run.Context+r.Run.Node != "" && !piped(r.Run.Policy.File)
	if found := r.Leaked; found != nil {
		// What writes goes by the installed policy, not by a file that differs.
		byFile := r.Comparison != nil && r.Comparison.Missing == ""
		if repeatable && !byFile && found.Due > 0 && len(r.Result.Refused) == 0 {
			next = append(next, judge.Remedy{Says: "Release what is due (needs the right to release)", Command: typed(again) + " --dry-run=false"})
		}
		if repeatable && found.Waiting > 0 && !r.Run.Memory {
			next = append(next, judge.Remedy{Says: "Remember what waits, so that its grace period can end (needs the right to write the ledger)", Command: typed(again) + " --remember --dry-run"})
		}
		if repeatable && found.Waiting > 0 && r.Run.Policy.GracePeriod.Duration > time.Minute {
			switch wait, due := soonest(r.Entries); {
			case wait > 0:
				says := "Look twice, at least a minute apart, in place of the grace period"
				next = append(next, judge.Remedy{Says: says, Command: fmt.Sprintf("%s --grace-period=60s --wait=%.0fm --dry-run", typed(again), wait.Minutes())})
			case due != nil:
				next = append(next, judge.Remedy{Says: "Wait until " + judge.Stamp(*due) + ", when a run releases the first of what waits"})
			}
		}
		if explain := explainOn(r.Run); len(found.HeldBy) > 0 && explain != "" {
			if i := slices.IndexFunc(r.Entries, func(e report.Entry) bool {
				return e.Leaked && e.IP != "" && e.Verdict == judge.Held && e.Reason == found.HeldBy[0].Reason
			}); i >= 0 {
				says := fmt.Sprintf("Ask why an address is held, here %s (%s)", r.Entries[i].IP, found.HeldBy[0].Reason.Words())
				next = append(next, judge.Remedy{Says: says, Command: explain + " " + quote(r.Entries[i].IP)})
			}
		}
		next = append(next, waitsOf(r)...)
	}
	if r.Summary.Released > 0 {
		next = append(next, judge.Remedy{Says: "Undo the releases of this run", Command: undoOn(r.Run)})
	}
	return next
}

// soonest returns how long a run that looks twice has to wait until it releases the first of what waits, 0
// if that is too long, and when a run releases that after its grace period; nil if none has begun.
func soonest(entries []report.Entry) (wait time.Duration, due *time.Time) {
	for _, e := range entries {
		if e.Verdict != judge.Suspected {
			continue
		}
		if e.Wait > 0 && (wait == 0 || e.Wait < wait) {
			wait = e.Wait
		}
		if e.Due != nil && (due == nil || e.Due.Before(*due)) {
			due = e.Due
		}
	}
	return wait, due
}

// waitsOf says which unreachable nodes hold addresses, and how to look at the first of them before it is
// fenced. It leaves out addresses that may be on any of several nodes.
func waitsOf(r report.Report) []judge.Remedy {
	var waiting []row
	for _, e := range rowsOf(r.Entries, false) {
		if a := e.Address; a != nil && a.Fate == report.Held && a.Reason == judge.NodeUnreachable && holderOf(e) != "" {
			waiting = append(waiting, e)
		}
	}
	where, names := commonest(waiting, "because of", "other node", holderOf)
	if len(names) == 0 {
		return nil
	}
	next := judge.Remedy{Says: "Look before you fence a node: addresses are held, " + where}
	if explain := explainOn(r.Run); explain != "" {
		next.Command = explain + " " + quote("node/"+names[0])
	}
	return []judge.Remedy{next}
}

// holderOf returns the node that may have the address of a row; nothing if it may be any of several.
func holderOf(e row) string {
	holder := ""
	for _, one := range e.Evidence {
		node := strings.TrimPrefix(one.Source, "node ")
		if e.HeldBy(node) == "" {
			continue
		}
		if holder != "" { // the others may be many
			return ""
		}
		holder = node
	}
	return holder
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
func typed(words []string) string { return strings.Join(quoted(words), " ") }

// quoted returns words, each of which a POSIX shell reads as one.
func quoted(words []string) []string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = quote(word)
	}
	return all
}
