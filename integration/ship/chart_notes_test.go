package ship_test

import (
	"slices"
	"strings"
	"testing"
)

// commands are the lines of the notes to be typed.
func commands(notes string) (all []string) {
	for line := range strings.Lines(notes) {
		if command, ok := strings.CutPrefix(line, "  "); ok {
			all = append(all, strings.TrimSpace(command))
		}
	}
	return all
}

// What the notes say to type works, on what the chart installs. No controller runs, so
// that what waits for a Job waits in vain.
func TestCommandsOfTheNotesWork(t *testing.T) {
	c := fresh(t)
	for _, tt := range []struct {
		name, values string
		want         int // commands of kubectl
	}{
		{"plan", "", 4},
		{"release", "mode: release", 3},
		{"outage", "outage: {enabled: true}", 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			to := target{"noted-" + tt.name, c.Namespace(t)}
			applyManifests(t, c, to.manifests(t, tt.values))
			got := 0
			for _, command := range commands(to.notes(t, tt.values)) {
				args := strings.Fields(strings.NewReplacer("--timeout=5m", "--timeout=1s", "'", "").Replace(command))
				if args[0] != "kubectl" {
					continue
				}
				got++
				args = args[1:]
				waits := slices.Contains(args, "wait") || slices.Contains(args, "logs")
				if slices.Contains(args, "logs") {
					args = append(args, "--pod-running-timeout=1s")
				}
				out, err := c.Kubectl(t.Context(), "", args...)
				if waits && err != nil && strings.Contains(out, "timed out waiting for the condition") {
					continue
				}
				if err != nil {
					t.Errorf("%s: %v\n%s", command, err, out)
				}
			}
			if got != tt.want {
				t.Errorf("%d commands of kubectl, want %d", got, tt.want)
			}
		})
	}
}
