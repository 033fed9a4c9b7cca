package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// writesAtOnce is how many objects Put writes at the same time.
const writesAtOnce = 8

// Put makes the API server's stores hold this and nothing else. It writes only what differs.
func (s Store) Put(ctx context.Context, c *cluster.Cluster) error {
	now, err := TakeStore(ctx, c)
	if err != nil {
		return err
	}
	client := c.Kube.Discovery().RESTClient()
	all := maps.Clone(now)
	maps.Copy(all, s)
	return cluster.Each(writesAtOnce, slices.Collect(maps.Keys(all)), func(_ int, path string) error {
		is, there := now[path]
		o, wanted := s[path]
		switch {
		case !wanted:
			return client.Delete().AbsPath(path).Do(ctx).Error()
		case !there:
			return o.Create(ctx, c)
		case is.content() != o.content():
			return o.replace(ctx, client, is)
		default:
			return nil
		}
	})
}

// Create creates a new object with the same content and status.
func (o Object) Create(ctx context.Context, c *cluster.Cluster) error {
	client := c.Kube.Discovery().RESTClient()
	fields, metadata := o.parts()
	return o.write(ctx, client, client.Post().AbsPath(o.collection(o.Namespace)), fields, unborn(metadata))
}

// replace overwrites the existing object.
func (o Object) replace(ctx context.Context, client rest.Interface, is Object) error {
	fields, metadata := o.parts()
	_, now := is.parts()
	metadata = unborn(metadata)
	metadata["resourceVersion"] = now["resourceVersion"]
	return o.write(ctx, client, client.Put().AbsPath(o.Path()), fields, metadata)
}

// unborn removes what the API server adds to an object's metadata.
func unborn(metadata map[string]json.RawMessage) map[string]json.RawMessage {
	for _, name := range []string{"resourceVersion", "generation", "managedFields", "uid", "creationTimestamp"} {
		delete(metadata, name)
	}
	return metadata
}

// write sends the object, and then its status, which the API server ignores at first.
func (o Object) write(ctx context.Context, client rest.Interface, request *rest.Request, fields, metadata map[string]json.RawMessage) error {
	raw, err := send(ctx, request, fields, metadata)
	if err != nil || fields["status"] == nil {
		return err
	}
	_, metadata = Object{Raw: raw}.parts()
	_, err = send(ctx, client.Put().AbsPath(o.Path()+"/status"), fields, metadata)
	return err
}

// send sends an object and returns the answer.
func send(ctx context.Context, request *rest.Request, fields, metadata map[string]json.RawMessage) ([]byte, error) {
	fields["metadata"] = encode(metadata)
	raw, err := request.SetHeader("Content-Type", "application/json").Body([]byte(encode(fields))).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", fields["metadata"], err)
	}
	return raw, nil
}
