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

// A manner says how long lists of an API server are best read: at once or by pages. It is safe
// for concurrent use.
type manner struct {
	ask     sync.Once // for the version of the API server
	byPages atomic.Bool
}

// atOnce reports whether a long list is best read at once, by the version of the API server.
// If the version is not known, pages are better. It asks the API server once.
func (m *manner) atOnce(ctx context.Context, client rest.Interface) bool {
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
func (m *manner) settled(ctx context.Context, err error) bool {
	var silent silentError
	if err == nil || ctx.Err() != nil || errors.Is(err, reaper.ErrRefused) || errors.As(err, &silent) ||
		apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return true
	}
	m.byPages.Store(true)
	return false
}

// Remember returns a client with which ListRaw and ListReduced ask but once how long lists are
// best read.
func Remember(client rest.Interface) rest.Interface { return &remembering{Interface: client} }

// A remembering is a client that remembers it.
type remembering struct {
	rest.Interface
	manner manner
}

// mannerOf returns what the client remembers; nothing yet if it does not.
func mannerOf(client rest.Interface) *manner {
	if r, ok := client.(*remembering); ok {
		return &r.manner
	}
	return new(manner)
}
