package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// needs are the parts, and the programs that they need beside ip-reaper, etcd and an API
// server.
var needs = map[string][]string{
	"plan": nil, "run": nil, "guest": nil,
	"whereabouts": {reconciler, reconcilerMap},
	"calico":      {"calicoctl", "calico-ipam"}, "calico-etcd": {"calicoctl", "calico-ipam"},
	"calico-peers": {controllers},
}

// The errors of a list of parts.
var (
	errNoParts = errors.New("-parts: want plan, run, whereabouts, guest, calico, calico-etcd and calico-peers, " +
		"or some of them, with commas between them")
	errNoDatastore = errors.New("-parts: calico-peers needs calico or calico-etcd beside it")
)

// parts parses a list of parts.
func parts(list string) (map[string]bool, error) {
	all := map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		if _, known := needs[name]; !known {
			return nil, fmt.Errorf("%w: %q", errNoParts, name)
		}
		all[name] = true
	}
	if all["calico-peers"] && !all["calico"] && !all["calico-etcd"] {
		return nil, errNoDatastore
	}
	return all, nil
}

// built returns an error unless all programs are there that the parts need.
func built(parts map[string]bool) error {
	for part := range parts {
		for _, program := range needs[part] {
			if _, err := assets.Path(program); err != nil {
				return fmt.Errorf("part %s: make bench builds what it needs: %w", part, err)
			}
		}
	}
	return nil
}

// most is the largest size that all of the parts can have.
func most(parts map[string]bool) int {
	if parts["guest"] || parts["plan"] || parts["run"] || parts["whereabouts"] {
		return mostPods
	}
	return mostCalicoPods
}

// A measurement measures what needs one cluster of one size, and adds it.
type measurement func(ctx context.Context, o options, s size, m *measured, out io.Writer) error

// measurements are those that the parts ask for.
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
