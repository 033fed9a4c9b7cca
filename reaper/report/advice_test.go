package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Promise 10: an operator pastes the command, and it finds the journal.
func TestUndoIsAWholeCommand(t *testing.T) {
	const id = "20261120-150405-ABCDEF"
	for _, tt := range []struct {
		name string
		run  report.RunInfo
		want string
	}{
		{"of a workstation", report.RunInfo{ID: id, Origin: report.Origin{Program: "ip-reaper", Context: "my-cluster", StateNamespace: "ip-reaper"}},
			"ip-reaper restore --context my-cluster --run " + id},
		{"of the plugin, with all flags", report.RunInfo{
			ID: id, Origin: report.Origin{Program: "kubectl ip-reaper", Context: "admin@c:6443", Kubeconfig: "my files/config", StateNamespace: "ours"},
			Policy: report.PolicyInfo{File: "outage.yaml"},
		}, "kubectl ip-reaper restore --context admin@c:6443 --kubeconfig 'my files/config' --policy outage.yaml --state-namespace ours --run " + id},
		{"with a policy from a pipe", report.RunInfo{
			ID: id, Origin: report.Origin{Program: "ip-reaper", Context: "c", StateNamespace: "ours"}, Policy: report.PolicyInfo{File: "/dev/fd/63"},
		}, "ip-reaper restore --context c --state-namespace ours --run " + id},
		{"with a policy from stdin", report.RunInfo{
			ID: id, Origin: report.Origin{Program: "ip-reaper", Context: "c", StateNamespace: "ours"}, Policy: report.PolicyInfo{File: "-"},
		}, "ip-reaper restore --context c --state-namespace ours --run " + id},
		{"by the installed policy, which a restore takes too", report.RunInfo{
			ID: id, Origin: report.Origin{Program: "ip-reaper", Context: "c", StateNamespace: "ours"}, Policy: report.PolicyInfo{Installed: "ours/ip-reaper-policy"},
		}, "ip-reaper restore --context c --state-namespace ours --run " + id},
		{"of a pod", report.RunInfo{
			ID: id, Origin: report.Origin{Program: "ip-reaper", Cluster: "https://10.96.0.1:443", StateNamespace: "ip-reaper"}, Policy: report.PolicyInfo{File: "/etc/ip-reaper/policy.yaml"},
		}, "kubectl ip-reaper restore --context CONTEXT --run " + id},
		{"of a pod whose installation names the context", report.RunInfo{
			ID: id, Origin: report.Origin{Program: "ip-reaper", Cluster: "https://10.96.0.1:443", KnownAs: "prod eu", StateNamespace: "ip-reaper"},
		}, "kubectl ip-reaper restore --context 'prod eu' --run " + id},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.run.Command("restore", "--run", id)); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
		})
	}
}
