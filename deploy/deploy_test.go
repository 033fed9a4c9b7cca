package deploy_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// Promise 5. An installation is a dry run unless a component for releases is listed. That of
// the CronJob takes away a flag for dry runs: integration/ship applies it.
func TestOnlyTheReleaseComponentsRelease(t *testing.T) {
	for component, dryRun := range map[string]bool{"plan": false, "node": true, "node-release": false} {
		data, err := os.ReadFile(filepath.Join("kustomize", "components", component, "policy.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.Load(data, plugin.Known(backends.All()))
		if err != nil {
			t.Fatalf("the policy of %s does not load: %v", component, err)
		}
		if got := p.DryRun == nil || *p.DryRun; got != dryRun {
			t.Errorf("%s: dryRun is %v, want %v", component, got, dryRun)
		}
	}
}

// Promise 10. The quota has room for the journals that are kept (docs/design.md) and for the largest
// one that can be restored.
func TestQuotaHasRoomForWhatARunWrites(t *testing.T) {
	const kept, ofOthers = 1000, 10
	hard := find[*corev1.ResourceQuota](t, folders(t, "base"), "ip-reaper").Spec.Hard["count/configmaps"]
	if least := int64(kept + journal.MaxSize/journal.MaxPart + ofOthers); hard.Value() < least {
		t.Errorf("the quota is %v, want %d at least", hard.Value(), least)
	}
}
