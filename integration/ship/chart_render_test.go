package ship_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// chartName is that of the chart, and of the release and the namespace that have the names of the
// Kustomize manifests.
const chartName = "ip-reaper"

// deploy is the folder of the manifests, seen from here.
var deploy = filepath.Join("..", "..", "deploy")

// chartDir is the folder of the chart.
func chartDir() string { return filepath.Join(deploy, "helm", chartName) }

// loadChart loads the chart anew, as helm does.
func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartDir())
	must(t, err)
	return c
}

// values reads values as helm reads those of -f.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	v, err := loader.LoadValues(strings.NewReader(text))
	must(t, err)
	return v
}

// A target is where a release goes to.
type target struct{ release, namespace string }

// theRelease is the target that has the names of the Kustomize manifests.
var theRelease = target{chartName, chartName}

// newest is a version of Kubernetes that has all that the chart makes.
const newest = "v1.37.0"

// render renders the chart for a target: its files by their names in templates. The API
// server is new, and has the APIs that Helm knows, and these.
func (to target) render(t *testing.T, v map[string]any, apis ...string) (map[string]string, error) {
	t.Helper()
	return to.renderChart(loadChart(t), v, newest, apis...)
}

// renderChart renders a chart as render does, for a version of Kubernetes.
func (to target) renderChart(c *chart.Chart, v map[string]any, version string, apis ...string) (map[string]string, error) {
	options := common.ReleaseOptions{Name: to.release, Namespace: to.namespace, Revision: 1, IsInstall: true}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.APIVersions = slices.Concat(capabilities.APIVersions, apis)
	capabilities.KubeVersion.Version = version
	all, err := util.ToRenderValues(c, v, options, capabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	files := make(map[string]string)
	for file, text := range rendered {
		files[strings.TrimPrefix(file, chartName+"/templates/")] = text
	}
	return files, nil
}

// notes are what helm prints after an installation.
func (to target) notes(t *testing.T, text string) string {
	t.Helper()
	files, err := to.render(t, values(t, text))
	must(t, err)
	return files["NOTES.txt"]
}

// manifests is all that helm would install, as one YAML file, in its order.
func (to target) manifests(t *testing.T, text string, apis ...string) string {
	t.Helper()
	files, err := to.render(t, values(t, text), apis...)
	must(t, err)
	return manifestsOf(t, files)
}

// manifestsOf are what helm would install of rendered files.
func manifestsOf(t *testing.T, files map[string]string) string {
	t.Helper()
	delete(files, "NOTES.txt")
	_, sorted, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	must(t, err)
	var all strings.Builder
	for _, manifest := range sorted {
		fmt.Fprintf(&all, "---\n%s\n", manifest.Content)
	}
	return all.String()
}

// objects are those that helm would install, by kind, namespace and name.
func (to target) objects(t *testing.T, text string, apis ...string) map[string]unstructured.Unstructured {
	t.Helper()
	return decode(t, to.manifests(t, text, apis...))
}

// decode reads a YAML file of objects strictly.
func decode(t *testing.T, text string) map[string]unstructured.Unstructured {
	t.Helper()
	objects := make(map[string]unstructured.Unstructured)
	for docs := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		must(t, err)
		if len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		var object unstructured.Unstructured
		if err := yaml.UnmarshalStrict(doc, &object.Object); err != nil {
			t.Fatalf("%v:\n%s", err, doc)
		}
		if object.Object == nil {
			continue // nothing but comments
		}
		all := []unstructured.Unstructured{object}
		if object.IsList() {
			list, err := object.ToList()
			must(t, err)
			all = list.Items
		}
		for _, object := range all {
			key := fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
			if _, twice := objects[key]; twice {
				t.Fatalf("%s is there twice", key)
			}
			objects[key] = object
		}
	}
}
