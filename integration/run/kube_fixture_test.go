package run_test

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

// The tests of the files named kube prove what reaper/kube and the protector reservedips do without a
// run: one holder at a time gets the lock, a journal is read as it was written, and reserved IPs are
// listed.

// patience is how long such a test waits for something.
const patience = 30 * time.Second

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
