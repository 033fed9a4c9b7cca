package whereabouts

import (
	"context"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// Plugins describe the backends Pools and Overlapping, in the order in which they release.
func Plugins() []plugin.Plugin {
	return []plugin.Plugin{
		{
			Name:     PoolsName,
			Summary:  "Whereabouts `IPPool` allocations (all namespaces, named networks, node slices)",
			Settings: func() any { return new(Settings) },
			Access: func(any) plugin.Access {
				return plugin.Access{
					plugin.Plan:    {rule(poolResource, "list"), rule(sliceResource, "list"), attachmentRule(), claimRule()},
					plugin.Release: {rule(poolResource, "get", "patch")},
					plugin.Restore: {rule(poolResource, "get", "patch")},
				}
			},
			Open: func(_ context.Context, env plugin.Env, _ any) (ipam.Backend, error) {
				b := NewPools(env.Client, shared(env.Settings), env.Concurrency)
				b.lists.off = env.Off
				return b, nil
			},
			Offline: OfflinePools,
		},
		{
			Name:    OverlappingName,
			Summary: "Whereabouts `OverlappingRangeIPReservation`s",
			Access: func(any) plugin.Access {
				return plugin.Access{
					plugin.Plan:    {rule(overlappingResource, "list"), rule(poolResource, "list"), attachmentRule(), claimRule()},
					plugin.Release: {rule(overlappingResource, "get", "patch", "delete")},
					plugin.Restore: {rule(overlappingResource, "get", "create", "patch")},
				}
			},
			Open: func(_ context.Context, env plugin.Env, _ any) (ipam.Backend, error) {
				b := NewOverlapping(env.Client, shared(env.Settings), env.Concurrency)
				if !env.Off {
					b.share(env.Opened)
				}
				return b, nil
			},
			Offline: OfflineOverlapping,
		},
	}
}

// shared returns the settings of Pools, which both backends use: the defaults in a program
// without Pools.
func shared(settings func(backend string) any) Settings {
	if s, ok := settings(PoolsName).(*Settings); ok {
		return *s
	}
	return Settings{}
}

// rule is for a resource of Whereabouts.
func rule(resource string, verbs ...string) rbacv1.PolicyRule {
	return plugin.Rule(v1alpha1.SchemeGroupVersion.Group, resource, verbs...)
}

// attachmentRule is for what networks exclude.
func attachmentRule() rbacv1.PolicyRule {
	return plugin.Rule(attachmentGroup, attachmentResource, "list")
}

// claimRule is for the virtual machines that addresses belong to.
func claimRule() rbacv1.PolicyRule {
	return plugin.Rule(attachmentGroup, claimResource, "list")
}
