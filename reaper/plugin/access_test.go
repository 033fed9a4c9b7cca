package plugin_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// An outside store is a store that may be outside the API server.
type outside struct {
	store
	is bool
}

func (o outside) Locate() ipam.Store { return ipam.Store{Outside: o.is} }

func TestNeedsAreThoseOfTheOpenedBackends(t *testing.T) {
	with := func(name string) plugin.Plugin {
		p := opens(name, store{name: name}, nil)
		p.Access = func(any) plugin.Access {
			return plugin.Access{
				plugin.Plan:    {plugin.Rule("", name, "list")},
				plugin.Release: {plugin.Rule("", name, "patch")},
			}
		}
		return p
	}
	plugins := []plugin.Plugin{with("a"), with("b"), with("c"), with("closed"), opens("needless", store{name: "needless"}, nil)}
	opened := []ipam.Backend{store{name: "a"}, outside{store{name: "b"}, true}, outside{store{name: "c"}, false}, store{name: "needless"}}
	got := plugin.Needs(plugins, opened, policy.Default(), plugin.Release)
	want := map[string][]rbacv1.PolicyRule{"a": {plugin.Rule("", "a", "patch")}, "c": {plugin.Rule("", "c", "patch")}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("needs (-want +got):\n%s", diff)
	}
}
