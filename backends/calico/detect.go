package calico

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The API groups that can hold Calico's data. Before Calico 3.32 it was always
// crd.projectcalico.org; projectcalico.org was Calico's own API server in front
// of it, which serves no blocks.
const (
	groupV1 = "crd.projectcalico.org"
	groupV3 = "projectcalico.org"
)

// The API group of DatastoreMigration. The migration controller of kube-controllers
// (3.32) moves the data from crd.projectcalico.org to projectcalico.org.
const migrationGroup = "migration.projectcalico.org"

// settledPhases are the phases of a migration in which one group holds all of the
// data and is in use.
var settledPhases = []string{"", "Pending", "Converged", "Complete"}

// findGroup returns the API group, as group/version, that holds the live data. It
// returns an error that wraps ipam.ErrNotInstalled if neither group defines
// blocks.
//
// Only a missing CustomResourceDefinition proves that a resource does not exist.
// libcalico also infers it from a list of blocks that is not found. But a proxy
// may answer a wrong path this way, and then every address would look free.
func findGroup(ctx context.Context, client rest.Interface) (string, error) {
	names := []string{"ipamblocks." + groupV1, "ipamblocks." + groupV3, "datastoremigrations." + migrationGroup}
	versions, errs := make([]string, len(names)), make([]error, len(names))
	var reads sync.WaitGroup
	for i, name := range names {
		reads.Go(func() { versions[i], errs[i] = definedVersion(ctx, client, name) })
	}
	reads.Wait()
	var found []string
	for i, group := range []string{groupV1, groupV3} {
		if errs[i] != nil {
			return "", errs[i]
		}
		if versions[i] != "" {
			found = append(found, group+"/"+versions[i])
		}
	}
	if len(found) == 0 {
		return "", fmt.Errorf("%w: no ipamblocks.%s and no ipamblocks.%s", ipam.ErrNotInstalled, groupV1, groupV3)
	}
	if errs[2] != nil {
		return "", errs[2]
	}
	if err := checkMigration(ctx, client, versions[2]); err != nil {
		return "", err
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return inUse(ctx, client, found)
}

// inUse returns the one group of two that is in use. Both are defined while data
// moves, and for as long as an administrator keeps the definitions of the other
// group. The other group is locked, or was never used.
func inUse(ctx context.Context, client rest.Interface, groups []string) (string, error) {
	var live []string
	for _, group := range groups {
		switch err := checkReady(ctx, client, group); {
		case err == nil:
			live = append(live, group)
		case !errors.Is(err, errNotReady):
			return "", err
		}
	}
	if len(live) != 1 {
		return "", fmt.Errorf("%d of the API groups %v are in use, but exactly one must be: check datastoreReady in the clusterinformation default of each", len(live), groups)
	}
	return live[0], nil
}

// errNotReady is the error for a datastore that Calico itself would not work with
// now.
var errNotReady = errors.New("Calico's datastore is not ready") //nolint:staticcheck // a name

// checkReady returns an error that wraps errNotReady unless the group's data is in
// use.
func checkReady(ctx context.Context, client rest.Interface, group string) error {
	const resource, name = "clusterinformations", "default"
	var info clusterInformation
	err := kube.Read(ctx, client, &info, "/apis", group, resource, name)
	switch {
	case kube.Gone(err, resource, name):
		return fmt.Errorf("%w: %s has no clusterinformation default", errNotReady, group)
	case err != nil:
		return err
	}
	return info.check()
}

// A clusterInformation is the part of Calico's ClusterInformation that locks the
// datastore, and identifies it. It is the same in every datastore.
type clusterInformation struct {
	Spec struct {
		Ready *bool  `json:"datastoreReady"`
		GUID  string `json:"clusterGUID"`
	} `json:"spec"`
}

// check returns an error that wraps errNotReady if the datastore is locked.
func (c clusterInformation) check() error {
	if c.Spec.Ready != nil && !*c.Spec.Ready {
		return fmt.Errorf("%w: datastoreReady is false in the clusterinformation default", errNotReady)
	}
	return nil
}

// checkMigration returns an error while data moves between the groups. The version is that of
// migrations; empty if they are not defined.
func checkMigration(ctx context.Context, client rest.Interface, version string) error {
	if version == "" {
		return nil
	}
	items, err := kube.ListRaw(ctx, client, func(get *rest.Request) *rest.Request {
		return get.AbsPath("/apis", migrationGroup, version, "datastoremigrations")
	})
	if err != nil {
		return fmt.Errorf("list datastoremigrations: %w", err)
	}
	for _, item := range items {
		var migration struct {
			Status struct {
				Phase string `json:"phase"`
			} `json:"status"`
		}
		if err := kube.Decode(item, &migration); err != nil {
			return fmt.Errorf("decode datastoremigration: %w", err)
		}
		if phase := migration.Status.Phase; !slices.Contains(settledPhases, phase) {
			return fmt.Errorf("a datastoremigration is moving Calico's data (phase %s): try again once it is complete", phase)
		}
	}
	return nil
}

// definedVersion returns the version in which a custom resource is stored. It
// returns an empty string if the resource is not defined, and an error if the API
// server does not serve that version.
func definedVersion(ctx context.Context, client rest.Interface, name string) (string, error) {
	const resource = "customresourcedefinitions"
	var crd struct {
		Spec struct {
			Versions []struct {
				Name    string `json:"name"`
				Served  bool   `json:"served"`
				Storage bool   `json:"storage"`
			} `json:"versions"`
		} `json:"spec"`
	}
	err := kube.Read(ctx, client, &crd, "/apis/apiextensions.k8s.io/v1", resource, name)
	if kube.Gone(err, resource, name) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the definition of %s: %w", name, err)
	}
	for _, version := range crd.Spec.Versions {
		if version.Served && version.Storage {
			return version.Name, nil
		}
	}
	return "", fmt.Errorf("%s is defined, but its stored version is not served", name)
}
