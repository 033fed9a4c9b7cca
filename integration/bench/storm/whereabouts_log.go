package storm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

// withoutReservation reports whether, according to the log of a successful ADD, the plugin gave the
// address without a reservation: in its last try it asked for one, found none, and wrote none
// (v0.9.4, see "A limit of the Whereabouts plugin" in docs/stores.md).
func withoutReservation(log, ip string) bool {
	asked := strings.LastIndex(log, fmt.Sprintf("Get overlappingRangewide allocation; normalized IP: %q,", ip))
	if asked < 0 {
		return false
	}
	found := fmt.Sprintf("Normalized IP is reserved; normalized IP: %q,", ip)
	return !strings.Contains(log[asked:], found) &&
		!strings.Contains(log[asked:], "UpdateOverlappingRangeAllocation success on allocate")
}

// deleted matches the plugin's log line for a deleted reservation.
var deleted = regexp.MustCompile(`UpdateOverlappingRangeAllocation success on deallocate: .*?\bName:([^ ,]+)`)

// deletedReservation returns the name of the reservation that a DEL deleted according to its log,
// or "".
func deletedReservation(log string) string {
	if match := deleted.FindStringSubmatch(log); match != nil {
		return match[1]
	}
	return ""
}

// logged runs a separate plugin, for the network of the sandbox, and returns its log.
func (w *whereabouts) logged(s *sandbox, do func(*plugin.Plugin, plugin.Network) error) (log string, err error) {
	dir, err := os.MkdirTemp(w.cluster.Dir, "storm-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := plugin.New(dir, w.cluster.Kubeconfig)
	if err != nil {
		return "", err
	}
	doErr := do(p, w.networks[s.place])
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.log"))
	if err == nil && len(files) != 1 {
		err = fmt.Errorf("logs of the plugin: %v, want one", files)
	}
	if err != nil {
		return "", errors.Join(doErr, err)
	}
	text, err := os.ReadFile(files[0])
	return string(text), errors.Join(doErr, err)
}
