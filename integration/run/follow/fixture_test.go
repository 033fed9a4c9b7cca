// Package follow_test proves on a real API server that the second look of a large cluster
// follows the pods: what it sees, how soon, and what becomes of it if the API server does
// not tell the changes. The numbers in the comments are those of the promises in
// docs/design.md.
package follow_test

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/parallel"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

func TestMain(m *testing.M) { kit.Main(m, kit.Options{WatchCache: true}) }

// crowdSize is a few pages of pods.
const crowdSize = 1001

// listTime is how long the list of the census takes. A second look does not list then.
const listTime = reaper.Freshness / 4

// sample is the address that the allocation of a crowd holds.
var sample = netip.MustParseAddr("10.99.0.1")

// A crowd is a cluster whose pods are followed, behind a proxy, and the store of one
// allocation that names no pod.
type crowd struct {
	*testing.T
	*cluster.Cluster
	namespace string
	proxy     *proxy.Proxy
	pods      *kube.Cluster
}

// newCrowd creates the pods. They are not scheduled, so that none hides an address.
func newCrowd(t *testing.T) *crowd {
	t.Helper()
	all := cluster.StartT(t)
	c := &crowd{T: t, Cluster: all, namespace: all.Namespace(t)}
	names := make([]string, crowdSize)
	for i := range names {
		names[i] = fmt.Sprintf("crowd-%04d", i)
	}
	client := c.client(c.Config)
	c.must(parallel.Each(16, names, func(_ int, name string) error {
		_, err := client.CoreV1().Pods(c.namespace).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.invalid/main:1"}}},
		}, metav1.CreateOptions{})
		return err
	}))
	return c
}

// must ends the test at an error.
func (c *crowd) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// client is a client like the program's: in protobuf.
func (c *crowd) client(config *rest.Config) kubernetes.Interface {
	c.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	c.must(err)
	return client
}

// in returns the same crowd for a subtest, with a proxy of its own.
func (c *crowd) in(t *testing.T) *crowd {
	t.Helper()
	sub := *c
	sub.T = t
	var err error
	sub.proxy, err = proxy.Start(c.Config)
	sub.must(err)
	t.Cleanup(sub.proxy.Stop)
	config := sub.proxy.Config(c.Config)
	client := sub.client(config)
	raw, err := kube.RawClient(config)
	sub.must(err)
	sub.pods = kube.NewCluster(client.CoreV1(), client.AppsV1(), raw)
	return &sub
}

// show creates a pod that shows the address of the allocation, until the test ends.
func (c *crowd) show(name string) {
	c.Helper()
	_, err := c.CreatePod(c.Context(), c.namespace, name, cluster.PodIPs(sample.String()))
	c.must(err)
	c.Cleanup(func() { c.must(c.DeletePod(context.WithoutCancel(c.Context()), c.namespace, name)) })
}

// Name implements reaper.Backend.
func (c *crowd) Name() string { return "fixed" }

// List implements reaper.Backend.
func (c *crowd) List(context.Context) iter.Seq2[reaper.Pool, error] {
	return func(yield func(reaper.Pool, error) bool) {
		yield(reaper.Pool{Name: "pool", Network: "-", Allocations: []reaper.Allocation{
			{Key: "1", IP: sample, Token: "1", Owner: reaper.Owner{Sandbox: "s1"}},
		}}, nil)
	}
}

// Release implements reaper.Backend.
func (c *crowd) Release(_ context.Context, _ string, ws []reaper.Warrant) []error {
	return make([]error, len(ws))
}

// A look is the allocation as an orphan, and the Confirmer of its second look.
type look struct {
	*crowd
	orphan    reaper.Orphan
	confirmer *reaper.Confirmer
}

// plan takes a census and judges the allocation by it. Then the proxy has no requests yet.
func (c *crowd) plan() look {
	c.Helper()
	terms := backendtest.Impatient()
	terms.Pods.Unnamed = policy.Release
	c.proxy.Before(pages, func(context.Context, proxy.Request) proxy.Action {
		time.Sleep(listTime)
		return proxy.Pass()
	})
	inv := reaper.TakeInventory(c.Context(), []reaper.Backend{c}, func(string) bool { return true })
	census, err := reaper.TakeCensus(c.Context(), c.pods, reaper.Scope{})
	c.must(err)
	orphans := reaper.MakePlan(reaper.Judge(time.Now(), terms, inv, census, reaper.Ledger{})).Orphans()
	if len(orphans) != 1 {
		c.Fatalf("%d orphans, want 1", len(orphans))
	}
	c.proxy.Reset()
	confirmer := reaper.NewConfirmer(c.pods, census, 1)
	c.Cleanup(confirmer.Close)
	return look{c, orphans[0], confirmer}
}

// confirm makes one second look.
func (l look) confirm() (reaper.Warrant, error) {
	ws, errs := l.confirmer.Confirm(l.Context(), []reaper.Orphan{l.orphan})
	return ws[0], errs[0]
}

// confirmed makes one second look, which must give a valid warrant.
func (l look) confirmed() reaper.Warrant {
	l.Helper()
	w, err := l.confirm()
	l.must(err)
	_, err = w.Allocation()
	l.must(err)
	return w
}

// fullLists returns how often all pods were listed: by pages, and not by one name.
func (l look) fullLists() int {
	n := 0
	for _, r := range l.proxy.Requests() {
		if r.String() == "list pods" && r.Namespace == "" {
			n++
		}
	}
	return n
}
