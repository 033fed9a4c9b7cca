package whereabouts

import (
	"context"
	"fmt"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	"github.com/k8snetworkplumbingwg/whereabouts/pkg/generated/clientset/versioned"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// Plugins describe the backends of Pools and of Overlapping, in the order in which
// they release.
func Plugins() []plugin.Plugin {
	return []plugin.Plugin{
		{
			Name:    PoolsName,
			Summary: "Whereabouts `IPPool` allocations (all namespaces, named networks, node slices)",
			Access: func(any) plugin.Access {
				return plugin.Access{
					plugin.Plan:    {rule(poolResource, "list"), attachmentRule()},
					plugin.Release: {rule(poolResource, "get", "patch")},
				}
			},
			Open:    opener(func(client rest.Interface) reaper.Backend { return NewPools(client) }),
			Offline: OfflinePools,
		},
		{
			Name:    OverlappingName,
			Summary: "Whereabouts `OverlappingRangeIPReservation`s",
			Access: func(any) plugin.Access {
				return plugin.Access{
					plugin.Plan:    {rule(overlappingResource, "list"), rule(poolResource, "list"), attachmentRule()},
					plugin.Release: {rule(overlappingResource, "get", "patch", "delete")},
					plugin.Restore: {rule(overlappingResource, "create")},
				}
			},
			Open:    opener(func(client rest.Interface) reaper.Backend { return NewOverlapping(client) }),
			Offline: OfflineOverlapping,
		},
	}
}

// opener returns the Open of a backend over a client of the group.
func opener(over func(rest.Interface) reaper.Backend) func(context.Context, plugin.Env, any) (reaper.Backend, error) {
	return func(_ context.Context, env plugin.Env, _ any) (reaper.Backend, error) {
		clients, err := versioned.NewForConfig(env.Config)
		if err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
		return over(clients.WhereaboutsV1alpha1().RESTClient()), nil
	}
}

// rule is about a resource of Whereabouts.
func rule(resource string, verbs ...string) rbacv1.PolicyRule {
	return plugin.Rule(v1alpha1.SchemeGroupVersion.Group, resource, verbs...)
}

// attachmentRule is for what networks exclude.
func attachmentRule() rbacv1.PolicyRule {
	return plugin.Rule(attachmentGroup, attachmentResource, "list")
}
