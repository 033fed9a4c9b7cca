package reserved_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

func TestMain(m *testing.M) {
	os.Exit(cluster.Run(m, func(context.Context) (cluster.Options, error) {
		return cluster.Options{CRDs: []string{"../kit/cluster/reserved-ips.yaml"}}, nil
	}))
}

// The resources of reserved-ips.yaml, and what a policy says of them.
var (
	spaced = policy.ReservedIP{
		Resource: policy.Resource{Group: "network.example.com", Version: "v1alpha1", Resource: "reservedips"},
		Address:  ".status.ips[*]", Pod: ".spec.pod", TTL: ".spec.ttl", DeletedAt: ".status.deletedAt", DeleteExpired: true,
	}
	wide = policy.ReservedIP{
		Resource: policy.Resource{Group: "network.example.com", Version: "v1alpha1", Resource: "clusterreservedips"},
		Address:  ".spec.ip", Pod: ".spec.pod", TTL: ".spec.ttl",
	}
)

// The pools of the two.
const (
	spacedPool = "reservedips.v1alpha1.network.example.com"
	widePool   = "clusterreservedips.v1alpha1.network.example.com"
)

// A scene is a cluster in which nobody reserves anything, with a namespace.
type scene struct {
	*testing.T
	cluster   *cluster.Cluster
	namespace string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, cluster: cluster.StartT(t)}
	s.cluster.ResetT(t)
	s.namespace = s.cluster.Namespace(t)
	return s
}

// must ends the test at an error.
func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// reserved reads what the policies name, as an administrator.
func (s *scene) reserved(policies ...policy.ReservedIP) *reservedips.Backend {
	s.Helper()
	return s.reservedAs(s.cluster.Config, policies...)
}

func (s *scene) reservedAs(config *rest.Config, policies ...policy.ReservedIP) *reservedips.Backend {
	s.Helper()
	r, err := reservedips.New(config, policies)
	s.must(err)
	return r
}

// list is List where it has to be good.
func (s *scene) list(r *reservedips.Backend) []reservedips.ReservedIP {
	s.Helper()
	all, err := r.All(s.Context())
	s.must(err)
	return all
}

// only is the one object that there is.
func (s *scene) only(r *reservedips.Backend) reservedips.ReservedIP {
	s.Helper()
	all := s.list(r)
	if len(all) != 1 {
		s.Fatalf("List = %+v, want one", all)
	}
	return all[0]
}

// objects is a client for the objects of a policy: of the scene's namespace, or of
// the cluster.
func (s *scene) objects(p policy.ReservedIP) dynamic.ResourceInterface {
	client := s.cluster.Dynamic.Resource(schema.GroupVersionResource(p.Resource))
	if p.Resource == spaced.Resource {
		return client.Namespace(s.namespace)
	}
	return client
}

// write creates an object from its fields, and gives it its status.
func (s *scene) write(p policy.ReservedIP, name, fields string) {
	s.Helper()
	kind := map[policy.Resource]string{spaced.Resource: "ReservedIP", wide.Resource: "ClusterReservedIP"}[p.Resource]
	var o unstructured.Unstructured
	s.must(o.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"network.example.com/v1alpha1","kind":%q,%s}`, kind, fields)))
	o.SetName(name)
	now, err := s.objects(p).Create(s.Context(), &o, metav1.CreateOptions{})
	s.must(err)
	if status := o.Object["status"]; status != nil && p.Resource == spaced.Resource {
		now.Object["status"] = status
		_, err = s.objects(p).UpdateStatus(s.Context(), now, metav1.UpdateOptions{})
		s.must(err)
	}
}

// change sets a field at the top of an object, or below its spec.
func (s *scene) change(p policy.ReservedIP, name string, value any, path ...string) {
	s.Helper()
	o, err := s.objects(p).Get(s.Context(), name, metav1.GetOptions{})
	s.must(err)
	s.must(unstructured.SetNestedField(o.Object, value, path...))
	if path[0] == "status" {
		_, err = s.objects(p).UpdateStatus(s.Context(), o, metav1.UpdateOptions{})
	} else {
		_, err = s.objects(p).Update(s.Context(), o, metav1.UpdateOptions{})
	}
	s.must(err)
}

// remove deletes an object as anybody may.
func (s *scene) remove(p policy.ReservedIP, name string) {
	s.Helper()
	s.must(s.objects(p).Delete(s.Context(), name, metav1.DeleteOptions{}))
}

// gone reports whether the API server has no such object.
func (s *scene) gone(p policy.ReservedIP, name string) bool {
	s.Helper()
	_, err := s.objects(p).Get(s.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		s.Fatal(err)
	}
	return err != nil
}

// record is what the journal has of an object.
func record(r reservedips.ReservedIP) reaper.Record {
	return reaper.Record{Backend: reservedips.Name, Pool: r.Pool, Key: r.Key, Stored: r.Stored}
}

// settled is an object as it is stored, but for what a creation makes anew.
func (s *scene) settled(stored json.RawMessage) string {
	s.Helper()
	var object, metadata map[string]json.RawMessage
	s.must(json.Unmarshal(stored, &object))
	s.must(json.Unmarshal(object["metadata"], &metadata))
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		delete(metadata, field)
	}
	var err error
	object["metadata"], err = json.Marshal(metadata)
	s.must(err)
	whole, err := json.Marshal(object)
	s.must(err)
	return string(whole)
}

// configMap creates a ConfigMap in the scene's namespace.
func (s *scene) configMap(name string, data map[string]string) {
	s.Helper()
	_, err := s.cluster.Kube.CoreV1().ConfigMaps(s.namespace).Create(s.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
	s.must(err)
}

// account returns a service account that may do just these verbs to resources of
// the group, when the API server goes by that.
func (s *scene) account(name string, may map[string][]string) *rest.Config {
	s.Helper()
	config, err := s.cluster.ServiceAccount(s.Context(), s.namespace, name)
	s.must(err)
	const group = "network.example.com"
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for resource, verbs := range may {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs})
	}
	rbac := s.cluster.Kube.RbacV1()
	_, err = rbac.Roles(s.namespace).Create(s.Context(), role, metav1.CreateOptions{})
	s.must(err)
	_, err = rbac.RoleBindings(s.namespace).Create(s.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: s.namespace, Name: name}},
	}, metav1.CreateOptions{})
	s.must(err)
	kube, err := kubernetes.NewForConfig(config)
	s.must(err)
	for resource, verbs := range may {
		resource, subresource, _ := strings.Cut(resource, "/")
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: s.namespace, Verb: verbs[0], Group: group, Resource: resource, Subresource: subresource,
			},
		}}
		s.must(wait.PollUntilContextTimeout(s.Context(), 5*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			got, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err == nil && got.Status.Allowed, err
		}))
	}
	return config
}
