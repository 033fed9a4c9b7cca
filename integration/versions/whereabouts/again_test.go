package whereabouts_test

import (
	"slices"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

// A pod came back under its name, and Multus shows which address it has now. Version 0.7.0
// gave it another one. Its two entries are alike, so nothing proves which is the later one, and
// both stay, also if the pod shows the earlier one: Multus may not have written yet. Since 0.8,
// the pod has one entry, and that is its own.
func TestPodThatCameBackKeepsWhatItsVersionGaveIt(t *testing.T) {
	for _, tt := range []struct{ version, shown string }{
		{"0.7.0", "10.1.0.4"}, {"0.7.0", "10.1.0.3"}, {"0.8.1", "10.1.0.3"}, {"0.9.4", "10.1.0.3"},
	} {
		t.Run(tt.version+" shows "+tt.shown, func(t *testing.T) {
			f := newFixture(t)
			f.loadRecording(tt.version)
			f.must(f.UpdatePod(f.Context(), "a", "again", shows(tt.shown)))
			f.play("", verdicts{kept: slices.Concat(live(), again[tt.version]), released: gone()})
		})
	}
}

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
