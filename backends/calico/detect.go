package calico

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The API groups that Calico's data can be in. Before 3.32 it was the first;
// projectcalico.org was only an API server of Calico's own in front of it, which
// serves no blocks.
const (
	groupV1 = "crd.projectcalico.org"
	groupV3 = "projectcalico.org"
)

// The resource of a move from the first group to the second, and the phases of it
// in which either group holds the whole of the data and is in use (kube-controllers'
// migration controller, 3.32).
const migrationGroup = "migration.projectcalico.org"

var settledPhases = []string{"", "Pending", "Converged", "Complete"}

// findGroup returns the API group, with its version, that holds the live data.
//
// That a resource does not exist is taken from its definition alone. A list of
// blocks that is not found, as libcalico takes it, may as well be one that was
// asked for in the wrong place, and then every address looks free.
func findGroup(ctx context.Context, client rest.Interface) (string, error) {
	var found []string
	for _, group := range []string{groupV1, groupV3} {
		version, err := definedVersion(ctx, client, "ipamblocks."+group)
		if err != nil {
			return "", err
		}
		if version != "" {
			found = append(found, group+"/"+version)
		}
	}
	if len(found) == 0 {
		return "", fmt.Errorf("%w: no ipamblocks.%s and no ipamblocks.%s", reaper.ErrNotInstalled, groupV1, groupV3)
	}
	if err := checkMigration(ctx, client); err != nil {
		return "", err
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return inUse(ctx, client, found)
}

// inUse returns the one of two groups that is in use, while data moves or when
// nobody has removed the other definitions since: the other one is locked, or was
// never used.
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
		return "", fmt.Errorf("%d of the API groups %v say that they are in use; it must be one", len(live), groups)
	}
	return live[0], nil
}

// errNotReady says that Calico itself would not work with the datastore now.
var errNotReady = errors.New("Calico's datastore is not ready") //nolint:staticcheck // a name

// checkReady returns errNotReady unless the data of the group is in use.
func checkReady(ctx context.Context, client rest.Interface, group string) error {
	const resource, name = "clusterinformations", "default"
	var info clusterInformation
	err := read(ctx, client, "/apis/"+group+"/"+resource+"/"+name, &info)
	switch {
	case kube.Gone(err, resource, name):
		return fmt.Errorf("%w: there is no clusterinformation default in %s", errNotReady, group)
	case err != nil:
		return err
	}
	return info.check()
}

// A clusterInformation is what is read of the resource of that name, which is the
// same in every datastore. Tools lock the datastore by it.
type clusterInformation struct {
	Spec struct {
		Ready *bool `json:"datastoreReady"`
	} `json:"spec"`
}

// check returns errNotReady where the datastore is locked.
func (c clusterInformation) check() error {
	if c.Spec.Ready != nil && !*c.Spec.Ready {
		return fmt.Errorf("%w: datastoreReady is false in the clusterinformation default", errNotReady)
	}
	return nil
}

// checkMigration returns an error while data moves between the groups.
func checkMigration(ctx context.Context, client rest.Interface) error {
	version, err := definedVersion(ctx, client, "datastoremigrations."+migrationGroup)
	if err != nil || version == "" {
		return err
	}
	items, err := kube.ListRaw(ctx, func() *rest.Request {
		return client.Get().AbsPath("/apis", migrationGroup, version, "datastoremigrations")
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
			return fmt.Errorf("a datastoremigration is in phase %s", phase)
		}
	}
	return nil
}

// definedVersion returns the version in which a custom resource is served; empty
// where it is not defined.
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
	err := read(ctx, client, "/apis/apiextensions.k8s.io/v1/"+resource+"/"+name, &crd)
	if kube.Gone(err, resource, name) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("is %s defined? %w", name, err)
	}
	for _, version := range crd.Spec.Versions {
		if version.Served && version.Storage {
			return version.Name, nil
		}
	}
	return "", fmt.Errorf("%s is defined, but the version that is stored is not served", name)
}

// read reads one object, patiently.
func read(ctx context.Context, client rest.Interface, uri string, into any) error {
	return kube.Patiently(ctx, func(ctx context.Context) error {
		data, err := kube.Send(ctx, client.Get().AbsPath(uri))
		if err != nil {
			return err
		}
		return kube.Decode(data, into)
	})
}
