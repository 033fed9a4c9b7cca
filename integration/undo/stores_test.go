package undo_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit/parallel"
)

// A resource is where the API server has what addresses, or allocations of them,
// are kept in.
type resource struct {
	api        string
	name       string
	namespaced bool
	reborn     bool // a run deletes such objects, and a restoration makes others
}

var resources = []resource{
	{"/apis/crd.projectcalico.org/v1", "ippools", false, false}, // of Calico
	{"/apis/crd.projectcalico.org/v1", "blockaffinities", false, false},
	{"/apis/crd.projectcalico.org/v1", "ipamblocks", false, false},
	{"/apis/crd.projectcalico.org/v1", "ipamhandles", false, true},
	{"/apis/whereabouts.cni.cncf.io/v1alpha1", "ippools", true, false},
	{"/apis/whereabouts.cni.cncf.io/v1alpha1", "overlappingrangeipreservations", true, true},
	{"/apis/network.example.com/v1alpha1", "reservedips", true, true},
}

// An object is one as the API server sends it.
type object struct {
	resource
	namespace, objectName string
	raw                   json.RawMessage
}

// collection is the path of the objects of a resource in a namespace, or in all.
func (r resource) collection(namespace string) string {
	if r.namespaced && namespace != "" {
		return r.api + "/namespaces/" + namespace + "/" + r.name
	}
	return r.api + "/" + r.name
}

// path is that of the object itself.
func (o object) path() string { return o.collection(o.namespace) + "/" + o.objectName }

// Stores are the objects of all stores, by path; those in etcd by key, as what they
// are.
type stores map[string]object

// stores reads all stores.
func (s *scene) stores() stores {
	s.Helper()
	lists := make([]stores, len(resources))
	s.must(parallel.Each(len(resources), resources, func(i int, r resource) (err error) {
		lists[i], err = s.list(r)
		return err
	}))
	all := stores{}
	for _, list := range lists {
		maps.Copy(all, list)
	}
	if s.Etcd == nil {
		return all
	}
	keys, err := s.Dump(s.Context())
	s.must(err)
	for key, value := range keys {
		all[key] = object{raw: json.RawMessage(value)}
	}
	return all
}

// list reads the objects of one resource.
func (s *scene) list(r resource) (stores, error) {
	raw, err := s.client().Get().AbsPath(r.collection("")).Do(s.Context()).Raw()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.name, err)
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("list %s: %w", r.name, err)
	}
	all := stores{}
	for _, item := range list.Items {
		var head struct {
			Metadata struct{ Namespace, Name string }
		}
		if err := json.Unmarshal(item, &head); err != nil {
			return nil, fmt.Errorf("list %s: %w", r.name, err)
		}
		o := object{r, head.Metadata.Namespace, head.Metadata.Name, item}
		all[o.path()] = o
	}
	return all, nil
}

func (s *scene) client() rest.Interface { return s.Cluster.Kube.Discovery().RESTClient() }

// parts takes an object apart, and its metadata. Each part stays as it is written.
func (o object) parts() (fields, metadata map[string]json.RawMessage) {
	for _, err := range []error{json.Unmarshal(o.raw, &fields), json.Unmarshal(fields["metadata"], &metadata)} {
		if err != nil {
			panic(err) // the API server sends objects
		}
	}
	return fields, metadata
}

// writeCount is what Calico counts the writes of a block by.
var writeCount = regexp.MustCompile(`"sequenceNumber":[0-9]+`)

// settled is what is stored of an object, byte for byte, but for what counts writes
// and what every creation makes anew.
func (o object) settled() string {
	if o.name == "" { // in etcd
		return writeCount.ReplaceAllString(string(o.raw), "")
	}
	fields, metadata := o.parts()
	delete(fields, "metadata")
	volatile := []string{"resourceVersion", "generation", "managedFields"}
	if o.reborn {
		volatile = append(volatile, "uid", "creationTimestamp")
	}
	for name, value := range metadata {
		if !slices.Contains(volatile, name) {
			fields["metadata."+name] = value
		}
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		lines = append(lines, name+": "+writeCount.ReplaceAllString(string(fields[name]), ""))
	}
	return strings.Join(lines, "\n")
}

// settled is that of each object.
func (st stores) settled() map[string]string {
	all := map[string]string{}
	for path, o := range st {
		all[path] = o.settled()
	}
	return all
}

// same reports whether the stores hold the same.
func (st stores) same(other stores) bool { return maps.Equal(st.settled(), other.settled()) }

// wantStores fails the test unless the stores hold the same, byte for byte.
func (s *scene) wantStores(when string, want stores) {
	s.Helper()
	if diff := cmp.Diff(want.settled(), s.stores().settled()); diff != "" {
		s.Errorf("stores %s (-want +got):\n%s", when, diff)
	}
}

// versions are the versions of all objects of the API server.
func (st stores) versions() map[string]string {
	all := map[string]string{}
	for path, o := range st {
		_, metadata := o.parts()
		all[path] = string(metadata["resourceVersion"])
	}
	return all
}
