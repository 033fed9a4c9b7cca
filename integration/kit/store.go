package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// A Resource is where the API server keeps addresses, or objects that protect them.
type Resource struct {
	API, Name  string
	Namespaced bool
	Reborn     bool // a run deletes such objects, and restore creates new ones
}

// The resources of the stores.
var (
	CalicoPools       = Resource{"/apis/crd.projectcalico.org/v1", "ippools", false, false}
	Affinities        = Resource{"/apis/crd.projectcalico.org/v1", "blockaffinities", false, false}
	Blocks            = Resource{"/apis/crd.projectcalico.org/v1", "ipamblocks", false, false}
	Handles           = Resource{"/apis/crd.projectcalico.org/v1", "ipamhandles", false, true}
	Pools             = Resource{"/apis/whereabouts.cni.cncf.io/v1alpha1", "ippools", true, false}
	Reservations      = Resource{"/apis/whereabouts.cni.cncf.io/v1alpha1", "overlappingrangeipreservations", true, true}
	ReservedIPObjects = Resource{"/apis/network.example.com/v1alpha1", "reservedips", true, false}
)

// all has the resources of all stores.
var all = []Resource{CalicoPools, Affinities, Blocks, Handles, Pools, Reservations, ReservedIPObjects}

// collection is the path of the objects in a namespace, or in all.
func (r Resource) collection(namespace string) string {
	if r.Namespaced && namespace != "" {
		return r.API + "/namespaces/" + namespace + "/" + r.Name
	}
	return r.API + "/" + r.Name
}

// An Object is an object as the API server sends it.
type Object struct {
	Resource
	Namespace, Name string
	Raw             json.RawMessage
}

// Path is the object's path in the API.
func (o Object) Path() string { return o.collection(o.Namespace) + "/" + o.Name }

// A Store has what stores hold: the objects by path, byte for byte.
type Store map[string]Object

// TakeStore reads the given resources, or else all. A resource that is not defined has no objects.
func TakeStore(ctx context.Context, c *cluster.Cluster, only ...Resource) (Store, error) {
	if len(only) == 0 {
		only = all
	}
	lists := make([]Store, len(only))
	err := cluster.Each(len(only), only, func(i int, r Resource) (err error) {
		lists[i], err = list(ctx, c, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	stores := Store{}
	for _, list := range lists {
		maps.Copy(stores, list)
	}
	return stores, nil
}

// StoreT is Take for a test; it ends the test on failure.
func StoreT(t testing.TB, c *cluster.Cluster, only ...Resource) Store {
	t.Helper()
	all, err := TakeStore(t.Context(), c, only...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// list reads the objects of one resource.
func list(ctx context.Context, c *cluster.Cluster, r Resource) (Store, error) {
	raw, err := c.Kube.Discovery().RESTClient().Get().AbsPath(r.collection("")).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return Store{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.Name, err)
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("list %s: %w", r.Name, err)
	}
	all := Store{}
	for _, item := range list.Items {
		var head struct {
			Metadata struct{ Namespace, Name string }
		}
		if err := json.Unmarshal(item, &head); err != nil {
			return nil, fmt.Errorf("list %s: %w", r.Name, err)
		}
		o := Object{r, head.Metadata.Namespace, head.Metadata.Name, item}
		all[o.Path()] = o
	}
	return all, nil
}

// WantT fails the test unless two views of a store are the same.
func WantT(t testing.TB, when string, want, got map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stores %s (-want +got):\n%s", when, diff)
	}
}
