package plugin

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Check returns the first mistake in a list of plugins.
func Check(plugins []Plugin) error {
	seen := make(map[string]bool, len(plugins))
	for i, p := range plugins {
		switch {
		case p.Name == "" || p.Summary == "" || p.Open == nil:
			return fmt.Errorf("plugin %d (%q): Name, Summary and Open are required", i, p.Name)
		case seen[p.Name]:
			return fmt.Errorf("plugin %d: there is another plugin %q: backends have different names", i, p.Name)
		case p.Scope != Cluster:
			return fmt.Errorf("plugin %q is of scope %v: this version runs backends of scope cluster only", p.Name, p.Scope)
		}
		seen[p.Name] = true
	}
	return nil
}

// Known returns what a policy has to know of the backends.
func Known(plugins []Plugin) []policy.Known {
	known := make([]policy.Known, len(plugins))
	for i, p := range plugins {
		known[i] = policy.Known{Name: p.Name, Summary: p.Summary, Settings: p.Settings}
	}
	return known
}

// Open opens the backends with the settings of a policy, in the order of the
// plugins, with every reaper.Protector after the others. It leaves out those that
// the policy gives nothing to do. The error is that of the first which cannot be
// opened.
func Open(ctx context.Context, plugins []Plugin, config *rest.Config, getenv func(string) string, p policy.Policy) ([]reaper.Backend, error) {
	var opened, protectors []reaper.Backend
	for _, one := range plugins {
		of := p.Backends[one.Name]
		if of.Settings == nil && one.Settings != nil {
			of.Settings = one.Settings()
		}
		b, err := one.Open(ctx, Env{Config: config, Getenv: getenv, Off: of.Enabled == policy.Off}, of.Settings)
		_, protects := b.(reaper.Protector)
		switch {
		case errors.Is(err, ErrUnused):
		case err != nil:
			return nil, err
		case protects:
			protectors = append(protectors, b)
		default:
			opened = append(opened, b)
		}
	}
	return append(opened, protectors...), nil
}

// Offline returns the backends over what the documents have of their stores, in the
// order of the plugins, and the documents that none of them has a use for.
func Offline(plugins []Plugin, documents []reaper.Document) (found []reaper.Backend, strange []reaper.Document) {
	strange = documents
	for _, p := range plugins {
		if p.Offline == nil {
			continue
		}
		b, rest := p.Offline(documents)
		if b != nil {
			found = append(found, b)
		}
		unused := make(map[place]bool, len(rest))
		for _, d := range rest {
			unused[placeOf(d)] = true
		}
		var left []reaper.Document
		for _, d := range strange {
			if unused[placeOf(d)] {
				left = append(left, d)
			}
		}
		strange = left
	}
	return found, strange
}

// A place is where a document was read, and of what kind it is there. No two
// documents have the same, but for a key of etcd that a file has twice.
type place struct{ file, place, key, apiVersion, kind string }

func placeOf(d reaper.Document) place { return place{d.File, d.Place, d.Key, d.APIVersion, d.Kind} }
