package deploy_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/backends/calico"
	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// access returns the permissions that a backend says it needs for some rights. Nil
// settings are those of a policy that has none.
func access(p plugin.Plugin, settings any, rights ...plugin.Right) []string {
	if p.Access == nil {
		return nil
	}
	if settings == nil && p.Settings != nil {
		settings = p.Settings()
	}
	var all []string
	for _, right := range rights {
		all = append(all, permissions(p.Access(settings)[right])...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// rightsOf are those of a mode.
func rightsOf(mode string) []plugin.Right {
	return map[string][]plugin.Right{
		"plan":    {plugin.Plan},
		"release": {plugin.Plan, plugin.Release},
		"restore": {plugin.Plan, plugin.Restore},
	}[mode]
}

// A plan only reads, by what backends ask for too.
func TestBackendsPlanWithReadsOnly(t *testing.T) {
	asked := 0
	for _, p := range backends.All() {
		if p.Access == nil {
			continue
		}
		for _, rule := range p.Access(someSettings(p))[plugin.Plan] {
			asked++
			for _, verb := range rule.Verbs {
				if !slices.Contains(reads, verb) {
					t.Errorf("%s asks for %s of %v to plan", p.Name, verb, rule.Resources)
				}
			}
		}
	}
	if asked == 0 {
		t.Error("no backend asks for anything")
	}
}

// someSettings are those of a policy that needs the most rights.
func someSettings(p plugin.Plugin) any {
	switch p.Name {
	case reservedips.Name:
		return &reservedips.Settings{Resources: []reservedips.Resource{
			{Resource: reservedips.ResourceName{Group: "a.example.com", Version: "v1", Resource: "holds"}},
			{Resource: reservedips.ResourceName{Group: "b.example.com", Version: "v1", Resource: "keeps"}, DeleteExpired: true},
		}}
	case calico.Name:
		return &calico.Settings{Datastore: calico.DatastoreKubernetes}
	default:
		return nil
	}
}

// The API server has nothing of a Calico that keeps its data in etcd.
func TestCalicoInEtcdNeedsNothing(t *testing.T) {
	got := access(calico.Plugin(), &calico.Settings{Datastore: calico.DatastoreEtcd}, plugin.Plan, plugin.Release, plugin.Restore)
	if len(got) > 0 {
		t.Errorf("it asks for %v", got)
	}
}

// runsOnly are rights that a restore does without. A claim keeps an allocation from its
// release only, and a restore does not report how full networks are.
var runsOnly = []string{
	"k8s.cni.cncf.io/ipamclaims: list", "whereabouts.cni.cncf.io/nodeslicepools: list",
	"crd.projectcalico.org/ippools: list", "projectcalico.org/ippools: list",
}

func TestChartGrantsWhatBackendsNeed(t *testing.T) {
	for _, p := range plugin.Of(backends.All(), plugin.Cluster) {
		settings := someSettings(p)
		for _, mode := range modes {
			want := access(p, settings, rightsOf(mode)...)
			got := permissions(chartRules(t, "ip-reaper.rules."+p.Name, chartData(mode == "release")))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s of %s (-backend +chart):\n%s", mode, p.Name, diff)
			}
		}
	}
	want := []string{"/pods: list", "kubevirt.io/virtualmachineinstances: list"} // which addresses are shown
	for _, p := range backends.All() {
		want = append(want, access(p, someSettings(p), plugin.Plan, plugin.Restore)...)
	}
	slices.Sort(want)
	want = slices.DeleteFunc(slices.Compact(want), func(one string) bool { return slices.Contains(runsOnly, one) })
	root := chartData(true)["root"]
	if diff := cmp.Diff(want, permissions(chartRules(t, "ip-reaper.rules.restore", root))); diff != "" {
		t.Errorf("restore (-backends +chart):\n%s", diff)
	}
}
