package calico

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/sjson"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// NewKubernetes returns the backend over the Kubernetes datastore. The first use
// finds the API group that holds the live data. The client is a kube.RawClient. It
// releases at most atOnce blocks at the same time.
func NewKubernetes(client rest.Interface, atOnce int) *Backend {
	b := newBackend(atOnce, func(ctx context.Context) (datastore, error) {
		group, err := findGroup(ctx, client)
		if err != nil {
			return nil, err
		}
		return kubernetes{client, group}, nil
	})
	b.place.Where = "the Kubernetes API"
	return b
}

// kubernetes is the datastore in custom resources of the API server. Blocks and
// handles have the same form in both API groups.
type kubernetes struct {
	client rest.Interface
	group  string // with the version, such as crd.projectcalico.org/v1
}

// ready implements datastore.
func (s kubernetes) ready(ctx context.Context) (string, error) {
	return "", checkReady(ctx, s.client, s.group)
}

// nodes implements datastore. In this datastore, Calico's nodes are those of the API server.
func (kubernetes) nodes(context.Context) ([]node, error) { return nil, nil }

// resources implements datastore. Only a missing definition proves that there is no such resource, and
// the resource may be in another version than blocks. But it almost never is, so the definition is
// read only if the list fails.
func (s kubernetes) resources(ctx context.Context, plural string) ([]resource, error) {
	items, err := s.listed(ctx, s.group, plural)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		group, version, _ := strings.Cut(s.group, "/")
		switch defined, unread := definedVersion(ctx, s.client, plural+"."+group); {
		case unread != nil:
			return nil, unread
		case defined == "":
			return nil, fmt.Errorf("%s.%s %w", plural, group, errUndefined)
		case defined != version:
			items, err = s.listed(ctx, group+"/"+defined, plural)
		}
	}
	all := make([]resource, len(items))
	for i, item := range items {
		all[i].data = item
	}
	return all, err
}

// listed returns the objects of a resource in a version of an API group.
func (s kubernetes) listed(ctx context.Context, group, plural string) ([]json.RawMessage, error) {
	return kube.ListRaw(ctx, s.client, func(get *rest.Request) *rest.Request { return get.AbsPath("/apis", group, plural) })
}

// objectsPerWrite implements datastore: the API server has no transactions.
func (kubernetes) objectsPerWrite() int { return 1 }

// transient implements datastore.
func (kubernetes) transient(err error) error { return kube.Transient(err) }

// name implements datastore.
func (kubernetes) name(k kind, id string) string { return resourceName(k, id) }

// newObject implements datastore. It removes the metadata that the API server fills
// in.
func (s kubernetes) newObject(k kind, _ string, raw []byte) (object, error) {
	o, err := readObject(k, raw)
	if err == nil {
		err = o.unambiguous()
	}
	if err != nil {
		return object{}, err
	}
	o.uid, o.revision, o.created = "", "", time.Time{}
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		if o.raw, err = sjson.DeleteBytes(slices.Clone(o.raw), "metadata."+field); err != nil {
			return object{}, err
		}
	}
	o.raw, err = sjson.SetBytes(o.raw, "apiVersion", s.group)
	return o, err
}

// uri returns the path of a resource, or of one of its objects.
func (s kubernetes) uri(k kind, name ...string) string {
	return strings.Join(append([]string{"/apis", s.group, string(k)}, name...), "/")
}

// list implements datastore. It fails if metadata cannot be decoded.
func (s kubernetes) list(ctx context.Context, k kind, reduce func(object) any) ([]any, error) {
	type undecoded struct{ err error } // of this reading: the list may be read again
	all, err := kube.ListReduced(ctx, s.client, func(get *rest.Request) *rest.Request { return get.AbsPath(s.uri(k)) }, func(item json.RawMessage) any {
		o, err := readObject(k, item)
		if err != nil {
			return undecoded{err}
		}
		return reduce(o)
	})
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		if failed, ok := one.(undecoded); ok {
			return nil, failed.err
		}
	}
	return slices.DeleteFunc(all, func(one any) bool { return one == nil }), nil
}

// get implements datastore. Like write, it keeps client-go from waiting inside
// the request.
func (s kubernetes) get(ctx context.Context, k kind, id string) (object, error) {
	name := resourceName(k, id)
	data, err := kube.Send(ctx, s.client.Get().AbsPath(s.uri(k, name)).MaxRetries(0))
	if kube.Gone(err, string(k), name) {
		return object{}, errGone
	}
	if err != nil {
		return object{}, err
	}
	return readObject(k, data)
}

// write implements datastore for one object.
func (s kubernetes) write(ctx context.Context, objects ...object) ([]object, error) {
	o := objects[0]
	path := s.uri(o.kind, o.name)
	var data []byte
	var err error
	switch {
	case o.revision == "":
		data, err = kube.SendOnce(ctx, s.client.Post().AbsPath(s.uri(o.kind)), o.raw)
	case o.raw == nil:
		err = kube.Delete(ctx, s.client.Delete().AbsPath(path), o.uid, o.revision)
	default:
		data, err = kube.SendOnce(ctx, s.client.Put().AbsPath(path), o.raw)
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return nil, errConflict
	case kube.Gone(err, string(o.kind), o.name):
		return nil, errGone
	case err != nil:
		return nil, err
	case o.raw == nil:
		return []object{o}, nil
	}
	now, err := readObject(o.kind, data)
	return []object{now}, err
}

// readObject decodes the metadata of an object.
func readObject(k kind, data json.RawMessage) (object, error) {
	var fields struct {
		Metadata kube.Metadata `json:"metadata"`
	}
	if err := kube.Decode(data, &fields); err != nil {
		return object{}, fmt.Errorf("decode: %w", err)
	}
	m := fields.Metadata
	return object{
		kind: k, name: m.Name, uid: m.UID, revision: m.ResourceVersion,
		raw: data, root: "spec", created: m.CreationTimestamp.Time, deleting: m.Deleting(),
	}, nil
}
