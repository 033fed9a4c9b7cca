package whereabouts

import (
	"context"
	_ "embed"
	"slices"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// Plugins describe the backends Pools and Overlapping, in the order in which they release.
func Plugins() []plugin.Plugin {
	// Which addresses networks give to pods, and the virtual machines that addresses belong to.
	attachments := plugin.Rule(attachmentGroup, attachmentResource, "list")
	claims := plugin.Rule(attachmentGroup, claimResource, "list")
	return []plugin.Plugin{
		{
			Name:     PoolsName,
			Summary:  "Whereabouts `IPPool` allocations (all namespaces, named networks, node slices)",
			Settings: func() any { return new(Settings) },
			Access: func(any) plugin.Access {
				return plugin.Access{
					plugin.Plan:    {rule(poolResource, "list"), rule(sliceResource, "list"), attachments, claims},
					plugin.Release: {rule(poolResource, "get", "patch")},
					plugin.Restore: {rule(poolResource, "get", "patch")},
				}
			},
			Open: func(_ context.Context, env plugin.Env, _ any) (ipam.Backend, error) {
				b := NewPools(env.Client, shared(env.Settings), env.Concurrency)
				b.lists.off = env.Off
				return b, nil
			},
		},
		{
			Name:    OverlappingName,
			Summary: "Whereabouts `OverlappingRangeIPReservation`s",
			Beside:  PoolsName,
			Access: func(any) plugin.Access {
				return plugin.Access{
					plugin.Plan:    {rule(overlappingResource, "list"), rule(poolResource, "list"), attachments, claims},
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

// Settings are backends.whereabouts of a policy. They also apply to Overlapping: both backends
// read what the same plugin writes.
type Settings struct {
	// UnknownFields is empty if the policy does not set it, which means HoldUnknownFields.
	UnknownFields UnknownFields `json:"unknownFields,omitzero"`
}

// UnknownFields says what happens to an allocation with a field unknown to this program.
type UnknownFields string

// The values of UnknownFields.
const (
	// HoldUnknownFields keeps the allocation: a later version of the plugin may use the field
	// to state that the address is in use.
	HoldUnknownFields UnknownFields = "hold"

	// IgnoreUnknownFields treats the allocation as if it did not have the field.
	IgnoreUnknownFields UnknownFields = "ignore"
)

var (
	//go:embed schema.json
	schemaPart []byte
	//go:embed example.yaml
	examplePart []byte
)

// Schema implements policy.Schemer.
func (*Settings) Schema() []byte { return schemaPart }

// Example implements policy.Exampler.
func (*Settings) Example() []byte { return examplePart }

// Validate implements policy.Validator.
func (s *Settings) Validate(at *field.Path) field.ErrorList {
	known := []UnknownFields{HoldUnknownFields, IgnoreUnknownFields}
	if s.UnknownFields == "" || slices.Contains(known, s.UnknownFields) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at.Child("unknownFields"), string(s.UnknownFields), known)}
}
