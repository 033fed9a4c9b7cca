package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// systemdUnits copies the units to a folder. The service starts a program that exists.
func systemdUnits(t *testing.T) (files []string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
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
		files = append(files, file)
	}
	return files
}

// analyze runs systemd-analyze. Without it, the test is skipped: .ci/run installs it.
func analyze(t *testing.T, args ...string) string {
	t.Helper()
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: systemd-analyze is not installed, so the units of deploy/systemd are not verified")
	}
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestSystemdUnitsAreValid(t *testing.T) {
	files := systemdUnits(t)
	out := analyze(t, append([]string{"verify", "--man=no"}, files...)...)
	for line := range strings.Lines(out) {
		// Units of the machine may have faults of their own.
		if strings.Contains(line, "ip-reaper") {
			t.Errorf("systemd-analyze verify: %s", line)
		}
	}
}

// The program loops in a pod only: a timer starts the service. At a boot, it is started after
// the container runtime.
func TestSystemdServiceRunsOnce(t *testing.T) {
	text, err := os.ReadFile("systemd/ip-reaper-node.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Type=oneshot\n", "NoNewPrivileges=yes\n", "ProtectSystem=strict\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the service does not have %q", want)
		}
	}
	after := ""
	for line := range strings.Lines(string(text)) {
		if units, ok := strings.CutPrefix(line, "After="); ok {
			after += units
		}
	}
	for _, runtime := range []string{
		"containerd", "crio", "cri-docker", "k3s", "k3s-agent", "rke2-server", "rke2-agent", "k0scontroller", "k0sworker", "snap.microk8s.daemon-containerd",
	} {
		if !slices.Contains(strings.Fields(after), runtime+".service") {
			t.Errorf("the service may start before %s", runtime)
		}
	}
	if strings.Contains(string(text), "--every") {
		t.Error("the service repeats runs itself")
	}
}
