package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// filterFlags are the flags that narrow what a command reports and releases. Without any
// of them, it is about all allocations.
type filterFlags struct {
	flags         *pflag.FlagSet
	allNamespaces bool
	pods          []string
	selected      judge.Selection // without the pods
}

// add adds the flags to a command of the scope.
func (f *filterFlags) add(flags *pflag.FlagSet, scope plugin.Scope) {
	f.flags = flags
	s := &f.selected
	flags.StringSliceVarP(&s.Namespaces, "namespace", "n", nil, "only pods in this `NAMESPACE`; repeatable")
	flags.StringSliceVar(&f.pods, "pod", nil, "only this `POD`, as NAMESPACE/NAME, or as NAME with -n; repeatable")
	if scope == plugin.Cluster { // on a node, all are of this node
		flags.StringSliceVar(&s.Nodes, "node", nil, "only pods of this `NODE`; repeatable")
	}
	flags.StringSliceVar(&s.Pools, "pool", nil, "only this `POOL`: a pool, with or without its namespace, a network, or a CIDR around pools; repeatable")
	flags.StringSliceVar(&s.Backends, "backend", nil, "only this `BACKEND`; repeatable")
	flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "pods in all namespaces, which is the default")
}

// selection returns what the flags select, or the mistake in them.
func (f *filterFlags) selection(plugins []plugin.Plugin) (judge.Selection, error) {
	s := f.selected
	if err := checkNames(f.flags, map[string][]string{"namespace": s.Namespaces, "pod": f.pods, "node": s.Nodes, "pool": s.Pools, "backend": s.Backends}); err != nil {
		return s, err
	}
	if f.allNamespaces && len(s.Namespaces) > 0 {
		return s, ipam.BadInput(errors.New("--all-namespaces and --namespace contradict each other"), "give one of them")
	}
	for _, pod := range f.pods {
		named, err := podNames(pod, s.Namespaces)
		if err != nil {
			return s, err
		}
		s.Pods = append(s.Pods, named...)
	}
	known := backendNames(plugins)
	for _, name := range s.Backends {
		if !slices.Contains(known, name) {
			return s, ipam.BadInput(fmt.Errorf("--backend: no backend named %q", name), cmp.Or(printable.Meant(name, known), "the backends are "+strings.Join(known, ", ")))
		}
	}
	return s, nil
}

// checkNames returns an error if a name of these flags is empty: an unset variable of a script
// must not select everything.
func checkNames(flags *pflag.FlagSet, given map[string][]string) error {
	for _, flag := range slices.Sorted(maps.Keys(given)) {
		if names := given[flag]; flags.Changed(flag) && (len(names) == 0 || slices.Contains(names, "")) {
			return ipam.BadInput(fmt.Errorf("--%s: a name is empty", flag), "leave the flag out to select all")
		}
	}
	return nil
}

// backendNames returns the names of the backends.
func backendNames(plugins []plugin.Plugin) []string {
	names := make([]string, len(plugins))
	for i, p := range plugins {
		names[i] = p.Name
	}
	return names
}

// podNames returns the pods that --pod names, each as namespace/name. A bare name is in
// each of the namespaces.
func podNames(pod string, namespaces []string) ([]string, error) {
	switch namespace, name, whole := strings.Cut(pod, "/"); {
	case whole && (namespace == "" || name == "" || strings.Contains(name, "/")):
		return nil, ipam.BadInput(fmt.Errorf("--pod: %q does not name a pod", pod), "give NAMESPACE/NAME")
	case whole && len(namespaces) > 0 && !slices.Contains(namespaces, namespace):
		return nil, ipam.BadInput(fmt.Errorf("--pod: %s is not in the namespace %s", pod, strings.Join(namespaces, " or ")), "")
	case whole:
		return []string{pod}, nil
	case len(namespaces) == 0:
		return nil, ipam.BadInput(fmt.Errorf("--pod: %q has no namespace", pod), "give NAMESPACE/NAME, or add -n NAMESPACE")
	}
	var names []string
	for _, namespace := range namespaces {
		names = append(names, namespace+"/"+pod)
	}
	return names, nil
}
