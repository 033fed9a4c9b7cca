// Package cluster is the Kubernetes side of a run: who is alive, and what
// earlier runs remember.
package cluster

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// pageSize is how many objects a list request asks for, as kubectl does.
const pageSize = 500

// Cluster answers from the API server, always by quorum reads: requests name no
// resourceVersion, and nothing is cached. It implements reaper.Cluster.
type Cluster struct {
	core Core
	apps appsv1client.StatefulSetsGetter
}

// Core is what is read of the core API group.
type Core interface {
	corev1client.PodsGetter
	corev1client.NodesGetter
}

// New returns the cluster behind the clients. The clientset of all API groups
// would do too, and make the program 15 MB larger.
func New(core Core, apps appsv1client.StatefulSetsGetter) *Cluster {
	return &Cluster{core, apps}
}

// Pods implements reaper.Cluster. Pages are reduced to what verdicts need as
// they come.
func (c *Cluster) Pods(ctx context.Context) ([]reaper.Pod, error) {
	return reaper.Pages(ctx, func(ctx context.Context, token string) ([]reaper.Pod, string, error) {
		list, err := c.core.Pods(metav1.NamespaceAll).List(ctx, page(token))
		if err != nil {
			return nil, "", err
		}
		if list.ResourceVersion == "" {
			return nil, "", errNoList
		}
		pods := make([]reaper.Pod, len(list.Items))
		for i := range list.Items {
			pods[i] = readPod(&list.Items[i])
		}
		return pods, list.Continue, nil
	})
}

// StatefulSets implements reaper.Cluster.
func (c *Cluster) StatefulSets(ctx context.Context) ([]reaper.StatefulSet, error) {
	return reaper.Pages(ctx, func(ctx context.Context, token string) ([]reaper.StatefulSet, string, error) {
		list, err := c.apps.StatefulSets(metav1.NamespaceAll).List(ctx, page(token))
		if err != nil {
			return nil, "", err
		}
		if list.ResourceVersion == "" {
			return nil, "", errNoList
		}
		sets := make([]reaper.StatefulSet, len(list.Items))
		for i := range list.Items {
			sets[i] = readStatefulSet(&list.Items[i])
		}
		return sets, list.Continue, nil
	})
}

// Nodes implements reaper.Cluster.
func (c *Cluster) Nodes(ctx context.Context) ([]reaper.Node, error) {
	return reaper.Pages(ctx, func(ctx context.Context, token string) ([]reaper.Node, string, error) {
		list, err := c.core.Nodes().List(ctx, page(token))
		if err != nil {
			return nil, "", err
		}
		if list.ResourceVersion == "" {
			return nil, "", errNoList
		}
		nodes := make([]reaper.Node, len(list.Items))
		for i := range list.Items {
			nodes[i] = readNode(&list.Items[i])
		}
		return nodes, list.Continue, nil
	})
}

// errNoList is an answer that is no list. client-go takes any object, and an
// empty one, for a list without items; a list of the API server has a version.
var errNoList = errors.New("the answer is no list: it has no resourceVersion")

// page asks for one page of a list.
func page(token string) metav1.ListOptions {
	return metav1.ListOptions{Limit: pageSize, Continue: token}
}

// Pod implements reaper.Cluster.
func (c *Cluster) Pod(ctx context.Context, ref reaper.PodRef) (reaper.Pod, reaper.Presence, error) {
	pod, err := c.core.Pods(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		return readPod(pod), reaper.Present, nil
	case reaper.Gone(err, "pods", ref.Name):
		return reaper.Pod{}, reaper.Absent, nil
	default:
		return reaper.Pod{}, reaper.Unknown, err
	}
}
