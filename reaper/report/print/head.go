package print

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// The exit codes of a run whose plan was refused, by a limit or for its store: see package cli.
const (
	exitUsage = 2
	exitLimit = 4
)

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
	for _, risk := range r.Risks() {
		head = append(head, notice{text: risk, minor: true})
	}
	// The error of a refused plan says the same as the refusals.
	code := r.Result.ExitCode
	if told := len(r.Result.Refused) > 0 && (code == exitLimit || code == exitUsage); r.Result.Error != "" && !told {
		head = append(head, notice{label: failedLabel, text: fmt.Sprintf("exit code %d: %s", code, r.Result.Error)})
	}
	if found := foundIn(r.Findings); found != "" {
		head = append(head, notice{text: "findings: " + found})
	}
	head = append(head, notice{text: nameOfRun(r.Run) + identity(r.Run), minor: r.Run.DryRun})
	if r.Comparison != nil {
		text := r.Comparison.String()
		if r.Comparison.Missing == "" && len(r.Result.Refused) > 0 {
			text += "; a limit refuses the whole plan of this one"
		}
		head = append(head, notice{text: text, minor: r.Comparison.Missing != ""})
	}
	return head
}

// foundIn counts findings by their kind; nothing if there are none.
func foundIn(findings []report.Finding) string {
	count := make(map[report.FindingKind]int)
	for _, f := range findings {
		count[f.Kind]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d %s", count[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// nameOfRun says which run it was. A look at files is none.
func nameOfRun(run report.RunInfo) string {
	switch {
	case run.Place() == "":
		return ""
	case run.DryRun:
		return "dry run, "
	}
	return "run " + run.ID + ", "
}

// identity says what a report is about, and by which policy.
func identity(run report.RunInfo) string {
	parts := ranOn(run)
	if run.Cluster != "" && run.StateNamespace != "" {
		parts = append(parts, "state namespace "+run.StateNamespace)
	}
	parts = append(parts, fmt.Sprintf("%s (grace period %s)", policyOf(run), run.Policy.GracePeriod))
	return strings.Join(append(parts, clock(&run.StartedAt)), ", ")
}

// policyOf says which policy a run used.
func policyOf(run report.RunInfo) string {
	if run.Policy.Installed != "" {
		return "installed policy " + run.Policy.Installed
	}
	return "policy " + cmp.Or(run.Policy.File, "defaults")
}

// ranOn says what a run was on: which cluster and stores, or which node, or files.
func ranOn(run report.RunInfo) []string {
	switch {
	case run.Node != "" && run.Cluster == "":
		return []string{"node " + run.Node, "no API server asked", "state folder " + run.StateDir}
	case run.Node != "":
		return []string{"node " + run.Node, "its pods in cluster " + run.Cluster, "state folder " + run.StateDir}
	case run.Cluster == "":
		return []string{"files"}
	}
	place := []string{"cluster " + run.Cluster}
	if run.Context != "" {
		place = append(place, "context "+run.Context)
	}
	for _, backend := range slices.Sorted(maps.Keys(run.Stores)) {
		place = append(place, backend+" in "+run.Stores[backend])
	}
	return place
}
