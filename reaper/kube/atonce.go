package kube

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// fromCache is the first version of Kubernetes in which the API server always answers a
// quorum read of a list from its cache, and sends the answer object by object. An earlier
// one reads the whole list from etcd, and holds the answer.
var fromCache = version.MustParseGeneric("1.34.0")

// A listMode says whether long lists of an API server are read whole or by pages. It is safe for
// concurrent use.
type listMode struct {
	ask     sync.Once // for the version of the API server
	byPages atomic.Bool
}

// atOnce reports whether a long list is best read at once, by the version of the API server.
// If the version is not known, pages are better. It asks the API server once.
func (m *listMode) atOnce(ctx context.Context, client rest.Interface) bool {
	m.ask.Do(func() {
		var served apiversion.Info
		err := Discover(ctx, client, &served, "/version")
		v, wrong := version.ParseGeneric(served.GitVersion)
		m.byPages.Store(err != nil || wrong != nil || v.LessThan(fromCache))
	})
	return !m.byPages.Load()
}

// settled reports whether a request for a whole list was answered, or failed as requests for
// its pages would. Otherwise the answer broke off, as it does when it takes longer than a request
// may: this list and the next ones are read by pages.
func (m *listMode) settled(ctx context.Context, err error) bool {
	var silent silentError
	if err == nil || ctx.Err() != nil || errors.Is(err, reaper.ErrRefused) || errors.As(err, &silent) ||
		apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return true
	}
	m.byPages.Store(true)
	return false
}

// Remember returns a client with which ListRaw and ListReduced ask only once how to read long
// lists.
func Remember(client rest.Interface) rest.Interface { return &remembering{Interface: client} }

// A remembering is a client that remembers it.
type remembering struct {
	rest.Interface
	listMode listMode
}

// listModeOf returns what the client remembers; nothing yet if it does not.
func listModeOf(client rest.Interface) *listMode {
	if r, ok := client.(*remembering); ok {
		return &r.listMode
	}
	return new(listMode)
}
