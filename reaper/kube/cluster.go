// Package kube is the API server's side of a run: the census, the ledger, the lock, the
// journals and the events. It also reads raw lists, and sorts the errors of the API
// server.
package kube

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// pageSize is the largest number of objects on the first page of a list, as with kubectl.
const pageSize = 500

// Cluster reads pods, virtual machines, StatefulSets and nodes from the API server. It
// implements reaper.Follower. Every read is a quorum read: requests have no
// resourceVersion, so that the API server answers from its store, or from a cache that is
// as new. Only a watch goes on from a resourceVersion.
type Cluster struct {
	core, apps, raw rest.Interface
	node            string // whose pods are listed; empty: all pods are

	lists *listMode
}

// A Group is the client of an API group.
type Group interface {
	RESTClient() rest.Interface
}

// NewCluster returns the cluster of the clients of core/v1 and apps/v1; raw is a RawClient.
// It does not take the clientset of all API groups, which makes the program 15 MB larger.
func NewCluster(core, apps Group, raw rest.Interface) *Cluster {
	return &Cluster{core: core.RESTClient(), apps: apps.RESTClient(), raw: raw, lists: listModeOf(raw)}
}

// StatefulSets implements reaper.Cluster.
func (c *Cluster) StatefulSets(ctx context.Context) ([]reaper.StatefulSet, error) {
	request := func() *rest.Request { return c.apps.Get().Resource("statefulsets") }
	return list(ctx, pageSize, request, func(l *appsv1.StatefulSetList) []appsv1.StatefulSet { return l.Items }, readStatefulSet)
}

// Nodes implements reaper.Cluster.
func (c *Cluster) Nodes(ctx context.Context) ([]reaper.Node, error) {
	request := func() *rest.Request { return c.core.Get().Resource("nodes") }
	return list(ctx, pageSize, request, func(l *corev1.NodeList) []corev1.Node { return l.Items }, readNode)
}

// list reads every object of a list, with at most that many objects on the first page. It
// reduces the objects page by page, so that it does not hold all of them in full.
func list[L, O, T any, P interface {
	*L
	metav1.ListInterface
	runtime.Object
}](ctx context.Context, first int, request func() *rest.Request, items func(*L) []O, reduce func(*O) T,
) ([]T, error) {
	all, err := listPages(ctx, first, request, func(data []byte) (metav1.ListInterface, []T, error) {
		return decodePage[L, O, T, P](data, items, reduce)
	})
	return all, answered(err)
}

// decodePage decodes a page of a list, and reduces its objects.
func decodePage[L, O, T any, P interface {
	*L
	metav1.ListInterface
	runtime.Object
}](data []byte, items func(*L) []O, reduce func(*O) T,
) (metav1.ListInterface, []T, error) {
	page := new(L)
	switch decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, P(page)); {
	case err != nil:
		return nil, nil, fmt.Errorf("decode: %w", err)
	case decoded != runtime.Object(P(page)):
		return nil, nil, errNoList
	}
	objects := items(page)
	reduced := make([]T, len(objects))
	for i := range objects {
		reduced[i] = reduce(&objects[i])
	}
	return P(page), reduced, nil
}

// Pod implements reaper.Cluster. It makes one request. If the API server asks to come back
// later, the error says when: the client does not wait, because other pods are looked at
// in the same time.
func (c *Cluster) Pod(ctx context.Context, ref reaper.PodRef) (reaper.Pod, reaper.Presence, error) {
	pod := new(corev1.Pod)
	err := c.core.Get().Namespace(ref.Namespace).Resource("pods").Name(ref.Name).MaxRetries(0).Do(ctx).Into(pod)
	switch {
	case err == nil:
		return readPod(pod), reaper.Present, nil
	case Gone(err, "pods", ref.Name):
		return reaper.Pod{}, reaper.Absent, nil
	default:
		return reaper.Pod{}, reaper.Unknown, answered(err)
	}
}
