// Package state is the API server's side of a run: the census, the ledger, the lock and the
// journals.
package state

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Cluster reads pods, virtual machines, StatefulSets and nodes from the API server. It
// implements census.Cluster. Requests have no resourceVersion: the API server answers a read by
// name from its store, and a list from its store or from a cache that it takes to be as fresh.
type Cluster struct {
	core, apps, raw rest.Interface
	node            string // the node whose pods are listed; empty: all
}

// A Group is the client of an API group.
type Group interface {
	RESTClient() rest.Interface
}

// NewCluster returns the cluster over clients for core/v1 and apps/v1; raw is a RawClient. It
// does not take the clientset of all API groups, which would make the program 15 MB larger.
func NewCluster(core, apps Group, raw rest.Interface) *Cluster {
	return &Cluster{core: core.RESTClient(), apps: apps.RESTClient(), raw: raw}
}

// NewNodePods returns only the pods of one node: it lists no virtual machines, StatefulSets or
// nodes. It is for runs on a node, where those lists keep nothing. raw is a RawClient.
func NewNodePods(core Group, raw rest.Interface, node string) *Cluster {
	return &Cluster{core: core.RESTClient(), raw: raw, node: node}
}

// Pods implements census.Cluster.
func (c *Cluster) Pods(ctx context.Context) ([]census.Pod, error) {
	request := func() *rest.Request {
		pods := c.core.Get().Resource("pods")
		if c.node != "" {
			pods.Param("fieldSelector", "spec.nodeName="+c.node)
		}
		return pods
	}
	list, err := kube.ReadList(ctx, c.raw, request, podForm())
	return list, kube.Answered(err)
}

// StatefulSets implements census.Cluster.
func (c *Cluster) StatefulSets(ctx context.Context) ([]census.StatefulSet, error) {
	if c.node != "" {
		return nil, ctx.Err()
	}
	request := func() *rest.Request { return c.apps.Get().Resource("statefulsets") }
	list, err := kube.ReadList(ctx, c.raw, request, kube.FormOf("apps/v1", "StatefulSetList", readStatefulSet))
	return list, kube.Answered(err)
}

// Nodes implements census.Cluster.
func (c *Cluster) Nodes(ctx context.Context) ([]census.Node, error) {
	if c.node != "" {
		return nil, ctx.Err()
	}
	request := func() *rest.Request { return c.core.Get().Resource("nodes") }
	list, err := kube.ReadList(ctx, c.raw, request, kube.FormOf("v1", "NodeList", readNode))
	return list, kube.Answered(err)
}

// Pod implements census.Cluster for a pod of any node. It makes one request. If the API server
// asks to come back later, the error says when: the client does not wait, because other pods
// can be looked at meanwhile.
func (c *Cluster) Pod(ctx context.Context, ref ipam.PodRef) (census.Pod, census.Presence, error) {
	pod := new(corev1.Pod)
	err := c.core.Get().Namespace(ref.Namespace).Resource("pods").Name(ref.Name).MaxRetries(0).Do(ctx).Into(pod)
	switch {
	case err == nil:
		return readPod(pod), census.Present, nil
	case kube.Gone(err, "pods", ref.Name):
		return census.Pod{}, census.Absent, nil
	default:
		return census.Pod{}, census.Unknown, kube.Answered(err)
	}
}
