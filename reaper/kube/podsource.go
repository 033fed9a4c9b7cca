package kube

import (
	"bytes"
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Pods implements reaper.Cluster.
func (c *Cluster) Pods(ctx context.Context) ([]reaper.Pod, error) {
	list, err := c.listPods(ctx)
	if err != nil {
		return nil, answered(err)
	}
	return list.pods, nil
}

// listPods lists every pod, or every one of the node. Where the API server answers consistent lists from its cache,
// it reads one answer with all pods. It reads pages otherwise, and after such an answer
// broke off: the API server ends each answer after its --request-timeout.
func (c *Cluster) listPods(ctx context.Context) (podPage, error) {
	request := func() *rest.Request {
		pods := c.core.Get().Resource("pods")
		if c.node != "" {
			pods.Param("fieldSelector", "spec.nodeName="+c.node)
		}
		return pods
	}
	if c.lists.atOnce(ctx, c.raw) {
		list, err := readAtOnce(ctx, request())
		if c.lists.settled(ctx, err) {
			return list, err
		}
	}
	var all podPage
	var err error
	reader := newPodReader()
	all.pods, err = listPages(ctx, pageSize, request, func(data []byte) (metav1.ListInterface, []reaper.Pod, error) {
		page, err := readPodList(bytes.NewReader(data), reader)
		meta := metav1.ListInterface(&metav1.ListMeta{ResourceVersion: page.resourceVersion, Continue: page.next})
		if errors.Is(err, errNotProtobuf) {
			meta, page.pods, err = decodePage(data, func(l *corev1.PodList) []corev1.Pod { return l.Items }, readPod)
		}
		if err == nil {
			all.resourceVersion = meta.GetResourceVersion()
		}
		return meta, page.pods, err
	})
	if err != nil {
		return podPage{}, err
	}
	return all, nil
}

// readAtOnce reads the one answer that has all pods. It does not hold the answer, so the
// answer may be of any size. It returns all pods or an error.
func readAtOnce(ctx context.Context, request *rest.Request) (podPage, error) {
	body, err := request.Stream(ctx)
	if err != nil {
		return podPage{}, err
	}
	defer body.Close()
	list, err := readPodList(body, newPodReader())
	if err == nil && list.next != "" {
		err = errOnePage
	}
	if err != nil {
		return podPage{}, err
	}
	return list, nil
}
