package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// names has the names of all parts.
var names = []string{"plan", "run", "guest", "whereabouts", "calico", "calico-etcd", "calico-peers"}

// parts parses a list of parts.
func parts(list string) (map[string]bool, error) {
	all := map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("-parts: %q is none of %s", name, strings.Join(names, ","))
		}
		all[name] = true
	}
	if all["calico-peers"] && !all["calico"] && !all["calico-etcd"] {
		return nil, errors.New("-parts: calico-peers needs calico or calico-etcd beside it")
	}
	return all, nil
}

// most returns the largest size that all the parts can have.
func most(parts map[string]bool) int {
	if parts["guest"] || parts["plan"] || parts["run"] || parts["whereabouts"] {
		return mostPods
	}
	return mostCalicoPods
}

// A measurement measures what needs one cluster of one size, and adds the results.
type measurement func(ctx context.Context, o options, s size, m *measured, out io.Writer) error

// measurements returns the measurements for the parts.
func measurements(parts map[string]bool) []measurement {
	var all []measurement
	if parts["guest"] {
		all = append(all, measureGuest)
	}
	if parts["plan"] || parts["run"] || parts["whereabouts"] {
		all = append(all, measurePools)
	}
	for _, f := range []form{inKubernetes, inEtcd} {
		if parts[f.part] {
			all = append(all, f.measure)
		}
	}
	return all
}
