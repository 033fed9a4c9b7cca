package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Of returns the plugins of one scope, in their order. A run opens those of its own scope.
func Of(plugins []Plugin, scope Scope) []Plugin {
	var of []Plugin
	for _, p := range plugins {
		if p.Scope == scope {
			of = append(of, p)
		}
	}
	return of
}

// Known returns what a policy must know about the backends.
func Known(plugins []Plugin) []policy.Known {
	known := make([]policy.Known, len(plugins))
	for i, p := range plugins {
		known[i] = policy.Known{Name: p.Name, Summary: p.Summary, Protects: p.Protect != nil, Settings: p.Settings}
	}
	return known
}

// Shares returns a function that reports whether a store may have an address of a network of another one.
func Shares(plugins []Plugin) func(store, other string) bool {
	beside := make(map[string]string)
	for _, p := range plugins {
		beside[p.Name] = p.Beside
	}
	return func(store, other string) bool { return beside[store] == other || beside[other] == store }
}

// With returns the Open or Protect of a plugin whose settings are of this type.
func With[S, T any](open func(env Env, settings *S) (T, error)) func(context.Context, Env, any) (T, error) {
	return func(_ context.Context, env Env, settings any) (T, error) {
		s, ok := settings.(*S)
		if !ok {
			var none T
			return none, fmt.Errorf("the settings are %T, not %T", settings, s)
		}
		return open(env, s)
	}
}

// Open opens the backends and the protectors with the settings of a policy, in the order of the
// plugins. It leaves out those that the policy gives nothing to do. The error is that of the first that
// cannot be opened. It fills in what env says about one backend and its settings.
func Open(ctx context.Context, plugins []Plugin, env Env, p policy.Policy) (backends []ipam.Backend, protectors []ipam.Protector, err error) {
	env.Settings, env.Concurrency = settingsOf(plugins, p), max(1, env.Concurrency)
	for _, one := range plugins {
		enabled := p.Backends[one.Name].Enabled
		env.On, env.Off = enabled == policy.On, enabled == policy.Off
		env.Opened = backends
		var backend ipam.Backend
		var protector ipam.Protector
		if one.Protect != nil {
			protector, err = one.Protect(ctx, env, env.Settings(one.Name))
		} else {
			backend, err = one.Open(ctx, env, env.Settings(one.Name))
		}
		switch {
		case errors.Is(err, ErrUnused):
		case err != nil:
			return nil, nil, err
		case one.Protect != nil:
			protectors = append(protectors, protector)
		default:
			backends = append(backends, backend)
		}
	}
	return backends, protectors, nil
}

// settingsOf returns a function that returns the settings of a plugin by its name:
// those of the policy, or else the defaults.
func settingsOf(plugins []Plugin, p policy.Policy) func(backend string) any {
	all := make(map[string]any, len(plugins))
	for _, one := range plugins {
		switch of := p.Backends[one.Name].Settings; {
		case of != nil:
			all[one.Name] = of
		case one.Settings != nil:
			all[one.Name] = one.Settings()
		}
	}
	return func(backend string) any { return all[backend] }
}

// Reads returns a function that reports whether a backend or a protector reads a document of files, with the
// settings of a policy.
func Reads(plugins []Plugin, p policy.Policy) func(ipam.Document) bool {
	settings := settingsOf(plugins, p)
	var rules []rbacv1.PolicyRule
	for _, one := range plugins {
		if one.Access != nil {
			rules = append(rules, one.Access(settings(one.Name))[Plan]...)
		}
	}
	return func(d ipam.Document) bool {
		reads := func(one Plugin) bool { return one.Reads != nil && one.Reads(d) }
		return slices.ContainsFunc(plugins, reads) || slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Verbs, "list") && slices.ContainsFunc(r.APIGroups, func(group string) bool {
				return slices.ContainsFunc(r.Resources, func(resource string) bool { return d.IsOf(group, resource) })
			})
		})
	}
}

// Needs returns the rules of the opened backends for one right, by backend, with the
// settings of a policy. A rule that has several API groups needs one of them.
func Needs(plugins []Plugin, opened []ipam.Backend, p policy.Policy, right Right) map[string][]rbacv1.PolicyRule {
	settings := settingsOf(plugins, p)
	needs := make(map[string][]rbacv1.PolicyRule)
	for _, b := range opened {
		if located, ok := b.(ipam.Locator); ok && located.Locate().Outside {
			continue
		}
		for _, one := range plugins {
			if one.Name == b.Name() && one.Access != nil {
				needs[one.Name] = one.Access(settings(one.Name))[right]
			}
		}
	}
	return needs
}
