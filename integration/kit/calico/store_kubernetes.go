package calico

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

const (
	group   = "crd.projectcalico.org"
	version = "v1"
)

// kindNames has the kind of each resource's objects.
var kindNames = map[Kind]string{
	Block:                 "IPAMBlock",
	Handle:                "IPAMHandle",
	Affinity:              "BlockAffinity",
	pools:                 "IPPool",
	"clusterinformations": "ClusterInformation",
}

// kubernetesStore reads and writes the bytes that the API server sends: decoding an object would
// change its numbers and the order of its fields.
type kubernetesStore struct{ cluster *cluster.Cluster }

// BlockName implements store.
func (kubernetesStore) BlockName(cidr netip.Prefix) string { return cidrName(cidr) }

// HandleName implements store.
func (kubernetesStore) HandleName(id string) string { return strings.ToLower(id) }

// AffinityName implements store.
func (kubernetesStore) AffinityName(node string, cidr netip.Prefix) string {
	return node + "-" + cidrName(cidr)
}

func (s kubernetesStore) client() rest.Interface { return s.cluster.Kube.Discovery().RESTClient() }

func path(kind Kind, name ...string) string {
	return "/" + strings.Join(append([]string{"apis", group, version, string(kind)}, name...), "/")
}

// Get implements store.
func (s kubernetesStore) Get(ctx context.Context, kind Kind, name string) (Object, error) {
	raw, err := s.client().Get().AbsPath(path(kind, name)).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		err = ErrNotFound
	}
	if err != nil {
		return Object{}, fmt.Errorf("get %s/%s: %w", kind, name, err)
	}
	return object(raw)
}

// object decodes an object that the API server has sent.
func object(raw []byte) (Object, error) {
	var o struct {
		Metadata struct{ Name, ResourceVersion string }
		Spec     json.RawMessage
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return Object{}, fmt.Errorf("decode object: %w", err)
	}
	return Object{
		Name: o.Metadata.Name, Revision: o.Metadata.ResourceVersion,
		Content: string(o.Spec), Raw: string(raw),
	}, nil
}

// List implements store.
func (s kubernetesStore) List(ctx context.Context, kind Kind) (map[string]Object, error) {
	raw, err := s.client().Get().AbsPath(path(kind)).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind, err)
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("list %s: %w", kind, err)
	}
	objects := map[string]Object{}
	for _, item := range list.Items {
		o, err := object(item)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind, err)
		}
		objects[o.Name] = o
	}
	return objects, nil
}

// Put implements store.
func (s kubernetesStore) Put(ctx context.Context, kind Kind, name, content string) error {
	raw, err := s.client().Get().AbsPath(path(kind, name)).Do(ctx).Raw()
	request, fields := s.client().Put().AbsPath(path(kind, name)), map[string]json.RawMessage{}
	switch {
	case apierrors.IsNotFound(err):
		request = s.client().Post().AbsPath(path(kind))
		raw = fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":%q}}`,
			group+"/"+version, kindNames[kind], name)
	case err != nil:
		return fmt.Errorf("put %s/%s: %w", kind, name, err)
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return fmt.Errorf("put %s/%s: %w", kind, name, err)
	}
	fields["spec"] = json.RawMessage(content)
	body, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("put %s/%s: %w", kind, name, err)
	}
	err = request.SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("put %s/%s: %w", kind, name, err)
	}
	return nil
}

// Delete implements store.
func (s kubernetesStore) Delete(ctx context.Context, kind Kind, name string) error {
	err := s.client().Delete().AbsPath(path(kind, name)).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("delete %s/%s: %w", kind, name, err)
	}
	return nil
}

// Versions implements store. It names each object resource/name.
func (s kubernetesStore) Versions(ctx context.Context) (map[string]string, error) {
	definitions := schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	crds, err := s.cluster.Dynamic.Resource(definitions).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", definitions.GroupResource(), err)
	}
	all := map[string]string{}
	for _, crd := range crds.Items {
		if name, _, _ := unstructured.NestedString(crd.Object, "spec", "group"); name != group {
			continue
		}
		plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
		objects, err := s.List(ctx, Kind(plural))
		if err != nil {
			return nil, err
		}
		for name, o := range objects {
			all[plural+"/"+name] = o.Revision
		}
	}
	return all, nil
}

func (s kubernetesStore) putResource(ctx context.Context, plural, _, name string, spec map[string]any) error {
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return s.Put(ctx, Kind(plural), name, string(text))
}
