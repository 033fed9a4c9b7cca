package reservedips

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A reservedResource is a resource of a policy, with the paths to the fields that
// are read.
type reservedResource struct {
	schema.GroupVersionResource
	pool          string // resource.version.group
	deleteExpired bool

	address, pod, namespace, ttl, deletedAt fieldPath
}

// newReservedResource parses the paths. Its errors begin with the field of
// the policy.
func newReservedResource(p Resource) (r reservedResource, err error) {
	r.GroupVersionResource = schema.GroupVersionResource(p.Resource)
	r.pool = r.Resource + "." + r.Version + "." + r.Group
	r.deleteExpired = p.DeleteExpired
	for _, path := range []struct {
		of   *fieldPath
		name string
		text FieldPath
	}{
		{&r.address, "address", p.Address},
		{&r.pod, "pod", p.Pod},
		{&r.namespace, "namespace", p.Namespace},
		{&r.ttl, "ttl", p.TTL},
		{&r.deletedAt, "deletedAt", p.DeletedAt},
	} {
		if *path.of, err = newFieldPath(path.name, path.text); err != nil {
			return r, err
		}
	}
	return r, nil
}

// request directs a request to the resource in a namespace. An empty namespace
// means all namespaces, or a resource without namespaces.
func (r reservedResource) request(request *rest.Request, namespace string) *rest.Request {
	root := "/apis/" + r.Group + "/" + r.Version
	if r.Group == "" {
		root = "/api/" + r.Version
	}
	return request.AbsPath(root).Resource(r.Resource).NamespaceIfScoped(namespace, namespace != "").
		SetHeader("Content-Type", "application/json")
}

// readAll decodes the objects of a complete list.
func (r reservedResource) readAll(items []json.RawMessage) ([]ReservedIP, error) {
	var all []ReservedIP
	led := map[string]bool{}
	for _, item := range items {
		reserved, err := r.read(item, led)
		if err != nil {
			return nil, fmt.Errorf("%s %w", r.pool, err)
		}
		if len(reserved.IPs) > 0 || reserved.Pod != (reaper.PodRef{}) {
			all = append(all, reserved)
		}
	}
	switch nowhere := fmt.Sprintf("leads to nothing in any of %d objects of %s", len(items), r.pool); {
	case len(items) == 0:
	case r.namespace.text != "" && led[r.pod.name] && !led[r.namespace.name]:
		return nil, fmt.Errorf("%v %s: correct it, or remove it if objects are in the namespace of their pod", r.namespace, nowhere)
	case len(all) > 0:
	case r.address.text == "":
		return nil, fmt.Errorf("%v %s", r.pod, nowhere)
	case r.pod.text == "":
		return nil, fmt.Errorf("%v %s", r.address, nowhere)
	default:
		return nil, fmt.Errorf("neither %v nor %v leads to anything in any of %d objects of %s", r.address, r.pod, len(items), r.pool)
	}
	return all, nil
}

// read decodes one object. The result has no IPs and no pod if the object has none.
// read adds to led the names of the paths that led to a value.
func (r reservedResource) read(item json.RawMessage, led map[string]bool) (ReservedIP, error) {
	head, err := readHead(item)
	if err != nil {
		return ReservedIP{}, err
	}
	reserved := ReservedIP{
		Pool: r.pool, Key: head.key(), DeleteExpired: r.deleteExpired,
		Token: head.Metadata.UID + "/" + head.Metadata.ResourceVersion, Stored: item,
	}
	fail := func(err error) (ReservedIP, error) {
		return ReservedIP{}, fmt.Errorf("%s: %w", reserved.Key, err)
	}
	var object any
	if err := kube.Decode(item, &object); err != nil {
		return fail(fmt.Errorf("decode: %w", err))
	}
	ips, err := r.address.values(object)
	if err != nil {
		return fail(err)
	}
	for _, value := range ips {
		ip, err := readAddress(value)
		if err != nil {
			return fail(r.address.mistake(value, err))
		}
		reserved.IPs = append(reserved.IPs, ip)
	}
	if reserved.Pod, err = r.readPod(object, head.Metadata.Namespace, led); err != nil {
		return fail(err)
	}
	if value, err := r.ttl.value(object); err != nil {
		return fail(err)
	} else if reserved.TTL, err = readTTL(value); err != nil {
		return fail(r.ttl.mistake(value, err))
	}
	if value, err := r.deletedAt.value(object); err != nil {
		return fail(err)
	} else if reserved.Deleted, err = readTime(value); err != nil {
		return fail(r.deletedAt.mistake(value, err))
	}
	return reserved, nil
}

// readPod returns the pod of an object. Its namespace is the given one unless the
// object names another.
func (r reservedResource) readPod(object any, namespace string, led map[string]bool) (reaper.PodRef, error) {
	pod, err := r.pod.value(object)
	if err != nil || pod == nil {
		return reaper.PodRef{}, err
	}
	led[r.pod.name] = true
	named, err := r.namespace.value(object)
	if err != nil {
		return reaper.PodRef{}, err
	}
	led[r.namespace.name] = led[r.namespace.name] || named != nil
	ref, err := readPodRef(pod, named, namespace)
	if err != nil {
		return reaper.PodRef{}, r.pod.mistake(pod, err)
	}
	return ref, nil
}
