package cluster

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
)

// Since reports whether the API server has the version or a newer one. A test asks if older ones
// lack what it is about.
func (c *Cluster) Since(v string) bool {
	return version.MustParseGeneric(c.Version).AtLeast(version.MustParseGeneric(v))
}

// askVersion asks the API server for its version. It fails if the environment chose another one, so
// that no test can pass for a version that it did not run on.
func (c *Cluster) askVersion() error {
	said, err := c.Kube.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask the API server for its version: %w", err)
	}
	chosen, err := assets.Kubernetes()
	if err != nil {
		return err
	}
	if chosen != "" && !strings.HasPrefix(said.GitVersion, "v"+chosen+".") {
		return fmt.Errorf("%s is %s, but the API server is %s", assets.KubernetesVariable, chosen, said.GitVersion)
	}
	c.Version = said.GitVersion
	return nil
}
