package deploy_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/policy"
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
