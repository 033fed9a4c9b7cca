// Package kube_test proves on a real API server what reaper/kube and the protector reservedips do
// without a run: one holder at a time gets the lock, a journal is read as it was written, and
// reserved IPs are listed. The numbers in the comments refer to the promises in docs/design.md.
package kube_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

func TestMain(m *testing.M) { kit.Main(m, kit.Options{Sets: []kit.Set{kit.ReservedIPs}}) }

// patience is how long a test waits for something.
const patience = 30 * time.Second

// A fixture is the cluster with the test's own namespace.
type fixture struct {
	*testing.T
	*cluster.Cluster
	namespace string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c := cluster.StartT(t)
	return &fixture{t, c, c.Namespace(t)}
}

// must ends the test on an error.
func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// client returns a client that, like the program's, uses protobuf.
func (f *fixture) client(config *rest.Config) kubernetes.Interface {
	f.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	f.must(err)
	return client
}

// watched returns such a client with a proxy between it and the API server.
func (f *fixture) watched() (kubernetes.Interface, *proxy.Proxy) {
	f.Helper()
	p, err := proxy.Start(f.Config)
	f.must(err)
	f.Cleanup(p.Stop)
	return f.client(p.Config(f.Config)), p
}
