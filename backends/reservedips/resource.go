package reservedips

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A reservedResource is a resource of a policy, with the paths to the fields to read.
type reservedResource struct {
	schema.GroupVersionResource
	name string // resource.version.group

	address, pod, namespace, ttl, deletedAt fieldPath

	fixedTTL *time.Duration // of all objects, if ttl is empty; nil keeps forever
}

// newReservedResource parses the paths. Its errors begin with the field of
// the policy.
func newReservedResource(p Resource) (reservedResource, error) {
	r := unparsed(p)
	for _, path := range r.paths() {
		if err := path.parse(); err != nil {
			return r, fmt.Errorf("%v: %w", path, err)
		}
	}
	if p.TTL == "" || p.TTL.isPath() {
		return r, nil
	}
	r.ttl.text = ""
	var err error
	r.fixedTTL, err = readTTL(string(p.TTL))
	return r, err
}

// unparsed returns the resource with paths that lead to nothing yet.
func unparsed(p Resource) reservedResource {
	return reservedResource{
		GroupVersionResource: schema.GroupVersionResource(p.Resource),

		name:      p.Resource.Resource + "." + p.Resource.Version + "." + p.Resource.Group,
		address:   fieldPath{name: "address", text: p.Address},
		pod:       fieldPath{name: "pod", text: p.Pod},
		namespace: fieldPath{name: "namespace", text: p.Namespace},
		ttl:       fieldPath{name: "ttl", text: p.TTL},
		deletedAt: fieldPath{name: "deletedAt", text: p.DeletedAt},
	}
}

func (r *reservedResource) paths() []*fieldPath {
	return []*fieldPath{&r.address, &r.pod, &r.namespace, &r.ttl, &r.deletedAt}
}

// readAll decodes the objects of a complete list.
func (r reservedResource) readAll(items []json.RawMessage) ([]ipam.Protection, error) {
	var all []ipam.Protection
	led := map[string]bool{}
	for _, item := range items {
		reserved, err := r.read(item, led)
		if err != nil {
			return nil, fmt.Errorf("%s %w", r.name, err)
		}
		if protectsAny(reserved) || reserved.Unreadable != "" {
			all = append(all, reserved)
		}
	}
	switch nowhere := fmt.Sprintf("leads to nothing in any of %d objects of %s", len(items), r.name); {
	case len(items) == 0:
	case r.namespace.text != "" && led[r.pod.name] && !led[r.namespace.name]:
		return nil, fmt.Errorf("%v %s: correct it, or remove it if objects are in the namespace of their pod", r.namespace, nowhere)
	case len(all) > 0 && slices.ContainsFunc(all, protectsAny):
	case len(all) > 0: // the paths may be wrong
		return nil, fmt.Errorf("none of %d objects of %s names an address that can be decoded: %s", len(items), r.name, all[0].Unreadable)
	case r.address.text == "":
		return nil, fmt.Errorf("%v %s", r.pod, nowhere)
	case r.pod.text == "":
		return nil, fmt.Errorf("%v %s", r.address, nowhere)
	default:
		return nil, fmt.Errorf("neither %v nor %v leads to anything in any of %d objects of %s", r.address, r.pod, len(items), r.name)
	}
	return all, nil
}

// protectsAny reports whether the object protects anything.
func protectsAny(p ipam.Protection) bool {
	return len(p.IPs)+len(p.Ranges)+len(p.Namespaces) > 0 || p.All || p.Pod != ipam.PodRef{}
}

// read decodes one object. The result has no IPs and no pod if the object has none. read adds
// to led the names of the paths that led to a value. It returns an error only for an object
// that no API server can have stored.
func (r reservedResource) read(item json.RawMessage, led map[string]bool) (ipam.Protection, error) {
	var object map[string]any
	if err := kube.Decode(item, &object); err != nil {
		return ipam.Protection{}, fmt.Errorf("decode: %w", err)
	}
	meta := unstructured.Unstructured{Object: object}
	namespace := meta.GetNamespace()
	if meta.GetName() == "" {
		return ipam.Protection{}, errors.New("an object lacks its name")
	}
	key := path.Join(namespace, meta.GetName())
	reserved := ipam.Protection{Name: r.name + " " + key}
	var addressErr, podErr, timeErr error
	reserved.IPs, reserved.Ranges, addressErr = r.readAddresses(object, namespace == "")
	reserved.Pod, podErr = r.readPod(object, namespace, led)
	if errors.Is(podErr, errNoNamespace) && r.namespace.text != "" && len(reserved.IPs)+len(reserved.Ranges) > 0 {
		podErr = nil // what no namespace has is no pod, but a node or a gateway
	}
	reserved.TTL, reserved.Deleted, timeErr = r.readTimes(object)
	if broken := cmp.Or(addressErr, podErr, timeErr); broken != nil {
		reserved.Unreadable = broken.Error()
		// While its times are unknown, it protects forever.
		reserved.TTL = nil
		reserved.Deleted = time.Time{}
	}
	if addressErr != nil || podErr != nil {
		reserved.Namespaces = r.namespacesOf(object, namespace)
		reserved.All = len(reserved.Namespaces) == 0 && podErr != nil
	}
	return reserved, nil
}

// readAddresses returns the addresses of an object, and ranges of more than maxLoose addresses, which
// only objects of the whole cluster may have. With an error, it returns those that can be decoded, and
// at most maxLoose of those that the other texts may name.
func (r reservedResource) readAddresses(object any, wide bool) (ips []netip.Addr, ranges ipam.Spans, mistake error) {
	values, mistake := r.address.values(object)
	var spans []ipam.Span
	room := maxLoose // for the addresses of ranges and of malformed texts
	for _, value := range values {
		pieces, err := pieces(value)
		if err != nil {
			mistake = cmp.Or(mistake, r.address.mistake(value, err))
		}
		for _, piece := range pieces {
			span, err := readSpan(piece)
			some := spread(span, room)
			switch {
			case err == nil && span.First == span.Last:
				ips = append(ips, span.First)
				continue
			case err == nil && some == nil && wide:
				spans = append(spans, span)
				continue
			case err == nil && some == nil:
				err = fmt.Errorf("is too large a range: objects in a namespace have at most %d addresses in ranges", maxLoose)
			}
			if err != nil {
				mistake = cmp.Or(mistake, r.address.mistake(piece, err))
				some = mayName(piece)
				some = some[:min(len(some), room)]
			}
			room -= len(some)
			ips = append(ips, some...)
		}
	}
	return ips, ipam.NewSpans(spans...), mistake
}

// readTimes returns the TTL and the deletion time of an object.
func (r reservedResource) readTimes(object any) (ttl *time.Duration, deleted time.Time, err error) {
	value, err := r.ttl.value(object)
	if err != nil {
		return nil, deleted, err
	}
	if ttl, err = readTTL(value); err != nil {
		return nil, deleted, r.ttl.mistake(value, err)
	}
	if r.ttl.text == "" {
		ttl = r.fixedTTL
	}
	if value, err = r.deletedAt.value(object); err != nil {
		return nil, deleted, err
	}
	if deleted, err = readTime(value); err != nil {
		return nil, deleted, r.deletedAt.mistake(value, err)
	}
	return ttl, deleted, nil
}

// readPod returns the pod of an object. Its namespace is the given one unless the
// object names another.
func (r reservedResource) readPod(object any, namespace string, led map[string]bool) (ipam.PodRef, error) {
	pod, err := r.pod.value(object)
	if err != nil || pod == nil {
		return ipam.PodRef{}, err
	}
	led[r.pod.name] = true
	named, err := r.namespace.value(object)
	if err != nil {
		led[r.namespace.name] = true
		return ipam.PodRef{}, err
	}
	led[r.namespace.name] = led[r.namespace.name] || named != nil
	ref, err := readPodRef(pod, named, namespace)
	if err != nil {
		return ipam.PodRef{}, r.pod.mistake(pod, err)
	}
	return ref, nil
}

// namespacesOf returns the namespaces of the pods that an object may mean: its own, and each
// one that it names for its pod.
func (r reservedResource) namespacesOf(object any, namespace string) []string {
	found := []string{namespace}
	named, _ := r.namespace.values(object)
	for _, value := range named {
		text, _ := value.(string)
		found = append(found, text)
	}
	pods, _ := r.pod.values(object)
	for _, value := range pods {
		text, _ := podText(value)
		if before, _, both := strings.Cut(text, "/"); both {
			found = append(found, before)
		}
	}
	return slices.DeleteFunc(found, func(name string) bool { return len(validation.IsDNS1123Label(name)) > 0 })
}
