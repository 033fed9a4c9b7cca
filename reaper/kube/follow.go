package kube

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// An API server sends a bookmark two seconds before the end of a watch, and otherwise about
// once a minute. It looks about once a second which watches are due. So a watch of three
// seconds has a bookmark after one to two seconds.
const (
	watchSeconds = 3
	watchLimit   = (watchSeconds + 2) * time.Second // for a server that does not end it
)

// noPod is a name that no pod has. A list of the pods of that name costs the API server
// the read of one key.
const noPod = "-"

// PodsVersion implements reaper.Follower. It makes one request. A list without a
// resourceVersion is a quorum read, also where the API server answers it from its cache:
// then the cache first catches up with the store.
func (c *Cluster) PodsVersion(ctx context.Context) (uint64, error) {
	pods := new(corev1.PodList)
	err := c.core.Get().Namespace(metav1.NamespaceDefault).Resource("pods").
		Param("fieldSelector", "metadata.name="+noPod).MaxRetries(0).Do(ctx).Into(pods)
	if err != nil {
		return 0, answered(err)
	}
	return parseVersion(pods.ResourceVersion)
}

// WatchPods implements reaper.Follower. It makes one request, which the API server ends
// after some seconds.
func (c *Cluster) WatchPods(ctx context.Context, since uint64, tell func(reaper.PodChange) bool) error {
	ctx, cancel := context.WithTimeout(ctx, watchLimit)
	defer cancel()
	stream, err := c.core.Get().Resource("pods").
		Param("watch", "true").
		Param("allowWatchBookmarks", "true").
		Param("resourceVersion", strconv.FormatUint(since, 10)).
		Param("timeoutSeconds", strconv.Itoa(watchSeconds)).
		MaxRetries(0).Watch(ctx)
	if err != nil {
		return watchError(err)
	}
	defer stream.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, more := <-stream.ResultChan():
			if !more {
				return nil
			}
			change, err := readChange(event)
			if err != nil {
				return err
			}
			if !tell(change) {
				return nil
			}
		}
	}
}

// readChange reduces an event of a watch of pods.
func readChange(event watch.Event) (reaper.PodChange, error) {
	if event.Type == watch.Error {
		return reaper.PodChange{}, watchError(apierrors.FromObject(event.Object))
	}
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return reaper.PodChange{}, refusedError{fmt.Errorf("an event of pods has a %T", event.Object)}
	}
	version, err := parseVersion(pod.ResourceVersion)
	if err != nil {
		return reaper.PodChange{}, err
	}
	change := reaper.PodChange{Version: version}
	if event.Type == watch.Bookmark {
		return change, nil
	}
	if pod.Name == "" || pod.Namespace == "" {
		return reaper.PodChange{}, refusedError{fmt.Errorf("an event %s of pods names no pod", event.Type)}
	}
	change.Ref = reaper.PodRef{Namespace: pod.Namespace, Name: pod.Name}
	switch event.Type {
	case watch.Added, watch.Modified:
		reduced := readPod(pod)
		change.Pod = &reduced
	case watch.Deleted:
	default:
		return reaper.PodChange{}, refusedError{fmt.Errorf("an event of pods has the type %q", event.Type)}
	}
	return change, nil
}

// watchError returns the error of a watch as reaper.Follower promises.
func watchError(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return fmt.Errorf("%w: %w", reaper.ErrVersionExpired, err)
	}
	return answered(err)
}

// errNoVersion says that the API server has resourceVersions of another kind.
var errNoVersion = refusedError{errors.New("a resourceVersion is not a positive integer")}

// parseVersion returns a resourceVersion as an integer.
func parseVersion(text string) (uint64, error) {
	version := versionOf(text)
	if version == 0 {
		return 0, fmt.Errorf("%w: %q", errNoVersion, text)
	}
	return version, nil
}

// versionOf returns a resourceVersion as an integer, by which Kubernetes orders it; 0 if it
// is none.
func versionOf(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return version
}
