package upgrade_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/world"
)

// TestRecord records what a version leaves, if -record names one.
func TestRecord(t *testing.T) {
	if *record == "" {
		t.Skip("nothing is to be recorded: see the comment of the package")
	}
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	r := recording{*record, filepath.Join("testdata", *record)}
	version := about{Commit: commitOf(t, filepath.Dir(root), *record), RecordedAt: time.Now().UTC().Truncate(time.Second)}
	p := earlier(t, *record)
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.write(t, "about", version)
	recordPolicy(t, r)
	recordNode(t, r, p)

	c := filled(t)
	r.write(t, "before", c)
	for _, form := range []string{small, sharded} {
		s := newScene(t, c)
		s.begin(form)
		l := s.leave(p)
		l.ConfigMaps = bare(l.ConfigMaps)
		r.write(t, form, l)
	}
}

// filled has the real plugins give out addresses, and returns the cluster. To what the world
// has, it adds addresses that have to wait: of a network without reservations, and of Calico.
func filled(t *testing.T) cast {
	t.Helper()
	w := world.New(t, calico.KubernetesT(t), world.Waiting)
	w.Must(w.Memory.Forget(t.Context()))
	p, err := plugin.New(t.TempDir(), w.Cluster.Kubeconfig)
	w.Must(err)
	_, err = p.Add(t.Context(), world.WAN, plugin.Pod{Namespace: world.Shop, Name: "slow-2"}, "wan-slow-2", "net1")
	w.Must(err)
	sandbox := calico.NewSandbox(world.Shop, "slow-2", world.Node)
	sandbox.IPv4 = true
	_, err = w.Add(t.Context(), sandbox)
	w.Must(err)
	pods, err := w.Cluster.Kube.CoreV1().Pods(world.Shop).List(t.Context(), metav1.ListOptions{})
	w.Must(err)
	for i := range pods.Items {
		pods.Items[i].ManagedFields = nil
	}
	return cast{objectsOf(t, w.Stores()), pods.Items}
}
