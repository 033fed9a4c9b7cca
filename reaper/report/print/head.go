package print

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// The labels of notices.
const (
	refusedLabel = "REFUSED"
	failedLabel  = "FAILED"
)

// exitLimit is the exit code of a run whose plan was refused.
const exitLimit = 4

// noMemory says why nothing that waits has a due time.
const noMemory = "no due times: no ledger is stored, so each dry run begins the grace periods again; --remember stores one"

// headOf returns the lines above the tables: how much is leaked, why the plan was refused,
// what failed, and which run it was.
func headOf(r report.Report) []notice {
	head := []notice{{text: r.BottomLine()}}
	for _, refusal := range r.Result.Refused {
		text := refusal.Message
		if !strings.HasPrefix(text, refusal.Limit) {
			text = refusal.Limit + ": " + text
		}
		if refusal.Remedy != "" {
			text += "; " + refusal.Remedy
		}
		head = append(head, notice{label: refusedLabel, text: text})
	}
	// The error of a refused plan says the same as the refusals.
	if told := len(r.Result.Refused) > 0 && r.Result.ExitCode == exitLimit; r.Result.Error != "" && !told {
		head = append(head, notice{label: failedLabel, text: fmt.Sprintf("exit code %d: %s", r.Result.ExitCode, r.Result.Error)})
	}
	for _, line := range wrap(identity(r.Run)) {
		head = append(head, notice{text: line, minor: true})
	}
	if l := r.Leaked; l != nil && l.Waiting > 0 && r.Run.DryRun && !r.Run.Memory && r.Run.StateNamespace+r.Run.StateDir != "" {
		head = append(head, notice{text: noMemory, minor: true})
	}
	return head
}

// identity says which run it was, on which cluster, and by which policy.
func identity(run report.RunInfo) []string {
	file := run.Policy.File
	if file == "" {
		file = "defaults"
	}
	name := "run " + run.ID
	if run.DryRun {
		name = "dry run"
	}
	parts := append([]string{name}, placeOf(run)...)
	if run.Cluster != "" && run.StateNamespace != "" {
		parts = append(parts, "state namespace "+run.StateNamespace)
	}
	parts = append(parts, fmt.Sprintf("policy %s (grace period %s)", file, run.Policy.GracePeriod))
	return append(parts, run.StartedAt.UTC().Format(time.RFC3339))
}

// maxWidth is the width of a line that says which run it was, in characters.
const maxWidth = 120

// wrap joins parts by commas into lines of maxWidth.
func wrap(parts []string) []string {
	const comma = ", "
	lines := parts[:1:1]
	for _, part := range parts[1:] {
		last := &lines[len(lines)-1]
		if utf8.RuneCountInString(*last+comma+part) > maxWidth {
			*last += ","
			lines = append(lines, part)
			continue
		}
		*last += comma + part
	}
	return lines
}

// placeOf says on what a run was: on which cluster or node, or on files.
func placeOf(run report.RunInfo) []string {
	switch {
	case run.Node != "" && run.Cluster == "":
		return []string{"node " + run.Node, "no API server asked", "state folder " + run.StateDir}
	case run.Node != "":
		return []string{"node " + run.Node, "its pods in cluster " + run.Cluster, "state folder " + run.StateDir}
	case run.Cluster == "":
		return []string{"files"}
	}
	if run.Context == "" {
		return []string{"cluster " + run.Cluster}
	}
	return []string{"cluster " + run.Cluster, "context " + run.Context}
}
