package ship_test

import (
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// applyManifests installs manifests as helm does, by server-side apply.
func applyManifests(t *testing.T, c *cluster.Cluster, manifests string) {
	t.Helper()
	out, err := c.Kubectl(t.Context(), manifests, "apply", "--server-side", "--field-manager=helm", "--validate=strict", "-f", "-")
	if err != nil {
		t.Fatalf("apply: %v\n%s", err, out)
	}
}

// longest is as long as helm lets the name of a release be.
var longest = strings.Repeat("a-very-long-name.", 4)[:52] + "z"

// The API server takes what the chart makes, also of the longest names.
func TestAPIServerAcceptsTheObjects(t *testing.T) {
	c := fresh(t)
	for _, tt := range []struct{ name, release, values string }{
		{"everything with etcd", chartName, everything + etcdValues + metricsValues},
		{"every field", chartName, everyField},
		{"another release", "prod", everything},
		{"the longest name", longest, everything},
		{"the longest prefix", chartName, "fullnameOverride: " + strings.Repeat("a", 36) + "\n" + everything},
	} {
		t.Run(tt.name, func(t *testing.T) {
			to := target{tt.release, c.Namespace(t)}
			out, err := c.Kubectl(t.Context(), to.manifests(t, tt.values), "create", "--dry-run=server", "--validate=strict", "-f", "-")
			if err != nil {
				t.Errorf("create: %v\n%s", err, out)
			}
		})
	}
}

// Two releases in a cluster do not take each other's objects.
func TestNamesBeginWithTheRelease(t *testing.T) {
	for _, tt := range []struct{ release, prefix string }{
		{"ip-reaper", "ip-reaper"},
		{"ip-reaper-prod", "ip-reaper-prod"},
		{"prod", "prod-ip-reaper"},
		{"a.b", "a.b-ip-reaper"},
		{strings.Repeat("a", 35) + ".b", strings.Repeat("a", 35)},
	} {
		to := target{tt.release, "elsewhere"}
		for key, object := range to.objects(t, everything) {
			got := object.GetName()
			if got != tt.prefix && !strings.HasPrefix(got, tt.prefix+"-") && !strings.HasPrefix(got, "ip-reaper-ledger") && got != state.PolicyName {
				t.Errorf("release %s: %s does not begin with %s", tt.release, key, tt.prefix)
			}
		}
		// What the program calls so has the same name everywhere.
		text := to.manifests(t, everything)
		for _, fixed := range []string{"resourceNames: [ip-reaper]\n", "resourceNames: [ip-reaper-ledger]\n"} {
			if !strings.Contains(text, fixed) {
				t.Errorf("release %s: there is no %q", tt.release, fixed)
			}
		}
	}
}
