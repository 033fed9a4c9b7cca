package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// systemd takes the units as they are shipped. In the copy that is looked at, the service
// starts a program that exists. Without systemd-analyze, the test is skipped: .ci/run
// installs it.
func TestSystemdUnitsAreValid(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: systemd-analyze is not installed, so the units of deploy/systemd are not verified")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"verify", "--man=no"}
	dir := t.TempDir()
	for _, name := range []string{"ip-reaper-node.service", "ip-reaper-node.timer"} {
		text, err := os.ReadFile(filepath.Join("systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		unit := strings.ReplaceAll(string(text), "/usr/local/bin/ip-reaper", program)
		if err := os.WriteFile(file, []byte(unit), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	out, err := exec.CommandContext(t.Context(), analyze, args...).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "ip-reaper") { // units of the machine may have faults of their own
			t.Errorf("systemd-analyze verify: %s", line)
		}
	}
}
