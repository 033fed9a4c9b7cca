package kit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// What the tests say of a version is true only if they ran on it.
func TestClusterOfAnotherVersionDoesNotStart(t *testing.T) {
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir() // an integration folder whose programs of 1.2 are the pinned ones
	if err := os.MkdirAll(filepath.Join(other, "bin", "kubernetes-1.2"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"go.mod": "go.mod", "go.sum": "go.sum", "bin/etcd": "bin/etcd",
		"bin/kubernetes-1.2/kube-apiserver": "bin/kube-apiserver", "bin/kubernetes-1.2/kubectl": "bin/kubectl",
	} {
		if err := os.Symlink(filepath.Join(root, target), filepath.Join(other, link)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(other)
	t.Setenv(assets.KubernetesVariable, "1.2")
	c, err := cluster.Start(t.Context(), cluster.Options{})
	if err == nil {
		err = c.Stop()
		t.Fatalf("an API server %s started as 1.2 (%v)", c.Version, err)
	}
	if want := "IP_REAPER_KUBERNETES is 1.2, but the API server is v1."; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestSinceComparesVersions(t *testing.T) {
	for _, test := range []struct {
		server, since string
		want          bool
	}{
		{"v1.34.0", "1.34", true}, {"v1.36.3", "1.34", true}, {"v1.100.0", "1.34", true},
		{"v1.33.13", "1.34", false}, {"v1.9.0", "1.34", false}, {"v1.34.2-gke.17", "1.34", true},
	} {
		c := cluster.Cluster{Version: test.server}
		if got := c.Since(test.since); got != test.want {
			t.Errorf("%s is since %s: %v, want %v", test.server, test.since, got, test.want)
		}
	}
}
