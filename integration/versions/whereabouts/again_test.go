package whereabouts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

// The cluster is upgraded, and the pod gets one more sandbox, by the real plugin of today. It
// adopts the entry of a version since 0.8, and that of 0.7.0 it does not. Then the two old
// entries are proved to be of earlier sandboxes. They stay with their reservations, which
// the pod could rely on again, until the pod is gone.
func TestPodThatComesBackAfterAnUpgrade(t *testing.T) {
	for version, tt := range map[string]struct {
		ip   string
		want verdicts
	}{
		"0.7.0": {"10.1.0.5", verdicts{
			kept:                    slices.Concat(live(), both("10.1.0.0-24", "10.1.0.5", "10.1.0.5"), []string{"10.1.0.3", "10.1.0.4"}),
			"held SiblingKept kept": {"10.1.0.0-24 10.1.0.3", "10.1.0.0-24 10.1.0.4"},
			released:                gone(),
		}},
		"0.8.1": {"10.1.0.3", verdicts{kept: slices.Concat(live(), again["0.8.1"]), released: gone()}},
		"0.9.4": {"10.1.0.3", verdicts{kept: slices.Concat(live(), again["0.9.4"]), released: gone()}},
	} {
		t.Run(version, func(t *testing.T) {
			f := newFixture(t)
			f.loadRecording(version)
			p, err := plugin.New(t.TempDir(), f.Kubeconfig)
			f.must(err)
			given, err := p.Add(t.Context(), plugin.Network{Range: "10.1.0.0/24"}, plugin.Pod{Namespace: "a", Name: "again"}, three, "net1")
			f.must(err)
			if len(given) != 1 || given[0].String() != tt.ip {
				t.Fatalf("the plugin gives %v, want %s", given, tt.ip)
			}
			f.must(f.UpdatePod(t.Context(), "a", "again", shows(tt.ip)))
			f.play("", tt.want)
			f.must(f.DeletePod(t.Context(), "a", "again"))
			rest := slices.Concat(again[version], both("10.1.0.0-24", tt.ip, tt.ip))
			slices.Sort(rest)
			f.play("", verdicts{kept: live(), released: slices.Compact(rest)})
		})
	}
}

// The pair rule with the real plugin of version 0.7.0, which make builds as
// integration/bin/whereabouts-0.7: a pod that comes back gets another address, and has both by
// name, until it is gone.
func TestPodThatComesBackByTheRealOldPlugin(t *testing.T) {
	binary, err := assets.Path("whereabouts-0.7")
	if err != nil {
		t.Skipf("make integration/bin/whereabouts-0.7 builds the plugin: %v", err)
	}
	f := newFixture(t)
	f.pod("other")
	flat := filepath.Join(t.TempDir(), "whereabouts.conf")
	f.must(os.WriteFile(flat, []byte("{}"), 0o600))
	add := func(pod, sandbox, want string) {
		t.Helper()
		call := plugin.Call{Binary: binary, Pod: plugin.Pod{Namespace: "a", Name: pod}, ContainerID: sandbox, Interface: "net1",
			Config: fmt.Appendf(nil, `{"cniVersion":"1.0.0","name":"net","type":"macvlan","ipam":{"type":"whereabouts","range":"10.1.0.0/24",
				"kubernetes":{"kubeconfig":%q},"configuration_path":%q}}`, f.Kubeconfig, flat)}
		given, err := call.Add(t.Context())
		f.must(err)
		if len(given) != 1 || given[0].String() != want {
			t.Fatalf("the plugin gives %v, want %s", given, want)
		}
	}
	add("again", one, "10.1.0.1")
	add("gone", two, "10.1.0.2")
	add("again", three, "10.1.0.3")
	f.pod("again", shows("10.1.0.3"))
	both1, both3 := both("10.1.0.0-24", "10.1.0.1", "10.1.0.1"), both("10.1.0.0-24", "10.1.0.3", "10.1.0.3")
	f.play("", verdicts{kept: slices.Concat(both1, both3), released: both("10.1.0.0-24", "10.1.0.2", "10.1.0.2")})
	f.must(f.DeletePod(t.Context(), "a", "again"))
	f.play("", verdicts{released: slices.Concat(both1, both3)})
	add("again", one, "10.1.0.1")
}
