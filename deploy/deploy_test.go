package deploy_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// Promise 5. An installation is a dry run unless another component is chosen.
func TestOnlyTheReleaseComponentsRelease(t *testing.T) {
	for component, dryRun := range map[string]bool{"plan": true, "release": false, "node": true, "node-release": false} {
		data, err := os.ReadFile(filepath.Join("kustomize", "components", component, "policy.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.Load(data, plugin.Known(backends.All()))
		if err != nil {
			t.Fatalf("the policy of %s does not load: %v", component, err)
		}
		if p.DryRun == nil || *p.DryRun != dryRun {
			t.Errorf("%s: dryRun is %v, want %v", component, p.DryRun, dryRun)
		}
	}
}
