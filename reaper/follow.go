package reaper

import (
	"context"
	"errors"
)

// A Follower is a Cluster that also tells what changes after a list.
//
// A version counts the changes of the store from which the pods are read: each write of a
// pod has a larger one than those before. It is the resourceVersion, which Kubernetes
// orders as an integer. No list and no change has version 0, which means that the version
// is not known.
type Follower interface {
	Cluster

	// PodsAt is Pods. It also returns the version of the list, or 0.
	PodsAt(ctx context.Context) ([]Pod, uint64, error)

	// PodsVersion returns a version that the store had during the call. So every change
	// that was made before the call has this version or a smaller one.
	PodsVersion(ctx context.Context) (uint64, error)

	// WatchPods tells each change of a pod after a version, in the order of the store, and
	// leaves none out. It returns when tell returns false, and when the API server ends
	// the watch. A later call may go on from the last version that was told.
	//
	// The error wraps ErrVersionExpired if the API server has forgotten the changes after
	// that version.
	WatchPods(ctx context.Context, since uint64, tell func(PodChange) bool) error
}

// ErrVersionExpired says that the changes after a version are forgotten, so that the pods
// must be listed again.
var ErrVersionExpired = errors.New("the version has expired")

// A PodChange says what the store did to a pod. A change without a name is a bookmark: all
// changes up to its version have been told.
type PodChange struct {
	Version uint64
	Ref     PodRef
	Pod     *Pod // nil if the pod was deleted
}

// podsAt lists every pod. The version is 0 if the cluster does not tell changes.
func podsAt(ctx context.Context, cluster Cluster) ([]Pod, uint64, error) {
	if f, ok := cluster.(Follower); ok {
		return f.PodsAt(ctx)
	}
	pods, err := cluster.Pods(ctx)
	return pods, 0, err
}
