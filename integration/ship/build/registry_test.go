package build_test

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	containers "github.com/google/go-containerregistry/pkg/registry"
	"helm.sh/helm/v4/pkg/registry"
)

// newRegistry returns the address of an empty registry.
func newRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(containers.New(containers.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// helmPulls has helm pull the chart of a release from a registry that it was published to.
func helmPulls(t *testing.T, c checkout) {
	number := strings.TrimPrefix(version, "v")
	chart := newRegistry(t) + "/charts/ip-reaper:" + number
	out, err := c.run("make", "publish-chart", "VERSION="+version, "CHART="+chart)
	if err != nil {
		t.Fatalf("make publish-chart: %v\n%s", err, out)
	}
	helm, err := registry.NewClient(registry.ClientOptPlainHTTP())
	must(t, err)
	pulled, err := helm.Pull(chart)
	must(t, err)
	if want := "digest=" + pulled.Manifest.Digest + "\n"; !strings.HasSuffix(out, want) {
		t.Errorf("make publish-chart: there is no %q at the end of\n%s", want, out)
	}
	want, err := os.ReadFile(filepath.Join(c.dir, "dist", "ip-reaper-"+number+".tgz"))
	must(t, err)
	if string(pulled.Chart.Data) != string(want) {
		t.Error("helm pulls another archive than the one of the release")
	}
	about, err := json.Marshal(pulled.Chart.Meta)
	must(t, err)
	if want := `"version":"` + number + `"`; !strings.Contains(string(about), want) {
		t.Errorf("the chart is of another version than %s: %s", number, about)
	}
}

// isPublishedOnce looks whether a registry gets the image of the archive, and whether a version that
// is published stays what it is.
func isPublishedOnce(t *testing.T, c checkout) {
	want, err := unpackImage(t, c, imageArchive).Digest()
	must(t, err)
	image := newRegistry(t) + "/ip-reaper:" + version
	for range 2 { // the second time, it is there already
		out, err := c.run("make", "publish-image", "VERSION="+version, "IMAGE="+image)
		if err != nil || !strings.HasSuffix(out, "digest="+want.String()+"\n") {
			t.Fatalf("make publish-image: %v, want %s\n%s", err, want, out)
		}
	}
	out, err := c.run("make", "publish-chart", "VERSION="+version, "CHART="+image)
	if err == nil || !strings.Contains(out, "is published already, as "+want.String()) {
		t.Errorf("something else under the same tag: %v\n%s", err, out)
	}
	server, _, _ := strings.Cut(image, "/")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, "http://"+server+"/v2/ip-reaper/manifests/"+version, nil)
	must(t, err)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	_ = response.Body.Close()
	if got := response.Header.Get("Docker-Content-Digest"); got != want.String() {
		t.Errorf("the registry has %s, want %s still", got, want)
	}
}
