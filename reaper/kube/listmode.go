package kube

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// fromCache is the first version of Kubernetes in which the API server always answers a quorum
// read of a list from its cache, and sends the answer object by object. Earlier ones read the
// whole list from etcd, and hold the answer.
var fromCache = version.MustParseGeneric("1.34.0")

// versionTimeout limits the request for the version of the API server.
const versionTimeout = 30 * time.Second

// FirstAnswer waits for the first answer of an API server, to a request for its version. The
// error says that none came, or that the credentials are not accepted: every request of a run
// would get the same answer, or wait for its timeout. The client is a RawClient.
func FirstAnswer(ctx context.Context, client rest.Interface, server string, limit time.Duration) error {
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	mode := modeOf(client)
	mode.whole(timed)
	var status apierrors.APIStatus
	var failed *url.Error
	switch err := mode.unanswered; {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case timed.Err() != nil:
		return fmt.Errorf("the API server %s did not answer within %v", server, limit)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server %s does not accept the credentials: %w", server, err)
	case err == nil, errors.As(err, &status):
		return nil
	case errors.As(err, &failed):
		return fmt.Errorf("the API server %s cannot be reached: %w", server, failed.Err)
	default:
		return fmt.Errorf("the API server %s cannot be reached: %w", server, err)
	}
}

// A listMode says whether an API server's lists are read whole or in pages. It is safe for
// concurrent use.
type listMode struct {
	client     rest.Interface // asks for the version
	ask        sync.Once
	unanswered error // of that request; nil once it was answered
	pages      atomic.Bool
}

// whole reports, by the API server's version, whether lists are read whole. If the version is
// unknown, they are read in pages. It asks the API server once.
func (m *listMode) whole(ctx context.Context) bool {
	m.ask.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, versionTimeout)
		defer cancel()
		var served apiversion.Info
		var data []byte
		m.unanswered = Patiently(ctx, func(ctx context.Context) (err error) {
			data, err = Send(ctx, m.client.Get().AbsPath("/version").MaxRetries(0))
			return err
		})
		err := m.unanswered
		if err == nil {
			err = Decode(data, &served)
		}
		v, wrong := version.ParseGeneric(served.GitVersion)
		m.pages.Store(err != nil || wrong != nil || v.LessThan(fromCache))
	})
	return !m.pages.Load()
}

// settled reports whether a request for a whole list was answered, or failed as requests for
// its pages would. Otherwise the answer broke off, as it does when it takes longer than a
// request may: this list and later ones are read in pages.
func (m *listMode) settled(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil || errors.Is(err, ipam.ErrRefused) ||
		apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return true
	}
	m.pages.Store(true)
	return false
}

// Remember returns a client with which ListRaw and ListReduced ask only once whether lists are
// read whole.
func Remember(client rest.Interface) rest.Interface {
	return &remembering{client, &listMode{client: client}}
}

// A remembering is a client that remembers that.
type remembering struct {
	rest.Interface
	mode *listMode
}

// modeOf returns what the client remembers; a new listMode if it is not from Remember.
func modeOf(client rest.Interface) *listMode {
	if r, ok := client.(*remembering); ok {
		return r.mode
	}
	return &listMode{client: client}
}
