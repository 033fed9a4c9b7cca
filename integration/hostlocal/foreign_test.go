package hostlocal_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// neighbour adds a network with a leaked lease to the base folder, and its configuration to
// the runtime's.
func (w *world) neighbour(network, file, more string) (key string) {
	w.Helper()
	w.spans[network] = []span{{Subnet: fmt.Sprintf("10.%d.0.0/24", 10+len(w.spans))}}
	ips := w.leaked(network, sandbox("web"))
	if file != "" {
		text := strings.Replace(string(w.config(network)), `"cniVersion"`, more+`"cniVersion"`, 1)
		w.must(os.WriteFile(w.path(confDir, file), []byte(text), 0o600))
	}
	return ips[0].String()
}

// Networks of podman, of nerdctl and of nobody share the base folder. None of their sandboxes
// is one of the runtime's, so their leases are held, until the policy names the network
// (promise 2).
func TestNetworksOfOtherProgramsAreHeld(t *testing.T) {
	w := newWorld(t)
	ips := w.leaked(pods, sandbox("web"))
	others := map[string]string{
		"podman":   w.neighbour("podman", "87-podman-bridge.conflist", ""),
		"podman7":  w.neighbour("podman7", "", ""),
		"nerdctl":  w.neighbour("nerdctl", "20-nerdctl.conflist", `"nerdctlID": "17f29b073143d8cd97b5bbe492bdeffec1c5fee55cc1fe2112c8b9335f8b6121", `),
		"old-pods": w.neighbour("old-pods", "30-old.conflist", ""),
		"nobodys":  w.neighbour("nobodys", "", ""),
	}
	before := w.content()
	report := w.run(0)
	w.wantFates(report, pods, map[string]fate{ips[0].String(): released})
	for network, key := range others {
		w.wantFates(report, network, map[string]fate{key: foreign})
	}
	w.wantContent(before, w.lease(pods, ips[0].String()))

	w.trust = []string{"old-pods", "podman"}
	report = w.run(0)
	freed := []string{w.lease(pods, ips[0].String())}
	for network, key := range others {
		want := foreign
		if slices.Contains(w.trust, network) {
			want, freed = released, append(freed, w.lease(network, key))
		}
		w.wantFates(report, network, map[string]fate{key: want})
	}
	w.wantContent(before, freed...)
}

// If the first configuration in the folder is of podman, the runtime's network is not known,
// and nothing is released (promise 2).
func TestPodmansConfigurationComesFirst(t *testing.T) {
	w := newWorld(t)
	ips := w.leaked(pods, sandbox("web"))
	podman := w.neighbour("podman", "05-podman.conflist", "")
	before := w.content()
	report := w.run(0)
	w.wantFates(report, pods, map[string]fate{ips[0].String(): foreign})
	w.wantFates(report, "podman", map[string]fate{podman: foreign})
	w.wantContent(before)
}

// Neither a link in the base folder nor a name in a configuration leads elsewhere. What is
// odd is reported, and what is beside it is released (promises 2, 6 and 9).
func TestNothingLeadsOutOfTheDataFolder(t *testing.T) {
	w := newWorld(t)
	outside := w.path("outside")
	w.must(os.MkdirAll(outside, 0o755))
	ips := w.leaked(pods, sandbox("web"))
	lease, err := os.ReadFile(w.lease(pods, ips[0].String()))
	w.must(err)
	secret := w.path("outside", "10.9.9.9")
	w.must(os.WriteFile(secret, lease, 0o600))
	at := time.Now().Add(-dead)
	w.must(os.Chtimes(secret, at, at))
	w.must(os.Symlink(outside, w.path(dataDir, "linked")))
	w.must(os.Symlink("../outside", w.path(dataDir, "linked-too")))
	for i, name := range []string{"../outside", "..", ".", "a/../../outside", "/", ""} {
		text := strings.Replace(string(w.config(pods)), `"name":"pods"`, fmt.Sprintf(`"name":%q`, name), 1)
		if !strings.Contains(text, fmt.Sprintf(`"name":%q`, name)) {
			t.Fatalf("the configuration is %s", text)
		}
		w.must(os.WriteFile(w.path(confDir, fmt.Sprintf("9%d-odd.conflist", i)), []byte(text), 0o600))
	}
	w.trust = []string{"linked", "outside"}
	before := w.content()
	outsideBefore, err := contentOf(outside)
	w.must(err)

	report := w.run(reap.ExitPartial)
	w.wantFates(report, pods, map[string]fate{ips[0].String(): released})
	w.wantContent(before, w.lease(pods, ips[0].String()))
	if after, err := contentOf(outside); err != nil || after[secret] != outsideBefore[secret] || len(after) != 1 {
		t.Errorf("outside there is %v, %v, want %v", after, err, outsideBefore)
	}
	failures := strings.Join(report.Backends[0].Failures, "\n")
	for _, name := range []string{"linked", "linked-too"} {
		if !strings.Contains(failures, w.path(dataDir, name)+": ") {
			t.Errorf("the failures do not tell of %s:\n%s", name, failures)
		}
	}
}
