// Package kit starts what the tests of a package share, picks samples of their matrices, fills a
// cluster with a World, and reads what its stores hold. The packages below it run and watch the real
// programs.
package kit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A Set is a set of custom resource definitions.
type Set string

// The sets that a cluster can have besides those of Whereabouts.
const (
	Attachments Set = "network-attachments"
	Calico      Set = "calico" // with room for the fields of later versions
	ReservedIPs Set = "reserved-ips"
)

// Options change the cluster of a test binary.
type Options struct {
	Sets  []Set
	Flags map[string]string // of the API server, without the leading dashes

	// Policies installs the shipped ValidatingAdmissionPolicies.
	Policies bool

	// WatchCache makes the API server answer lists from its cache, as it does by default. Each such
	// list waits up to a tenth of a second.
	WatchCache bool
}

// Main runs the tests of a package with one cluster and one plain etcd for all of them, started by
// the first test that asks for them. Call it from TestMain; it exits.
func Main(m *testing.M, o Options) {
	dir, err := os.MkdirTemp("", "ip-reaper-crds-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := calico.Run(m, func(ctx context.Context) (cluster.Options, error) { return o.cluster(ctx, dir) })
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// cluster returns the options of the cluster. The folder is for generated definitions.
func (o Options) cluster(ctx context.Context, dir string) (cluster.Options, error) {
	flags := map[string]string{}
	if !o.WatchCache {
		flags["watch-cache"] = "false"
	}
	for flag, value := range o.Flags {
		flags[flag] = value
	}
	all := cluster.Options{Flags: flags}
	if o.Policies {
		all.Prepare = reap.InstallPolicies
	}
	for _, set := range o.Sets {
		crds, err := set.crds(ctx, dir)
		if err != nil {
			return all, fmt.Errorf("find custom resources %s: %w", set, err)
		}
		all.CRDs = append(all.CRDs, crds)
	}
	return all, nil
}

// crds returns the file or folder of the set.
func (s Set) crds(ctx context.Context, dir string) (string, error) {
	switch s {
	case Attachments:
		return cluster.NetworkAttachmentCRD()
	case ReservedIPs:
		return cluster.ReservedIPCRD()
	case Calico:
		dir = filepath.Join(dir, string(s))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
		return dir, calico.LooseCRDs(ctx, dir)
	default:
		return "", fmt.Errorf("no set has this name")
	}
}
