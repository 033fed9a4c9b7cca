package build_test

import (
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	containers "github.com/google/go-containerregistry/pkg/registry"
	"helm.sh/helm/v4/pkg/registry"
)

// helmPulls has helm pull the chart of a release from a registry that it was published to.
func helmPulls(t *testing.T, c checkout) {
	server := httptest.NewServer(containers.New(containers.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	number := strings.TrimPrefix(version, "v")
	chart := strings.TrimPrefix(server.URL, "http://") + "/charts/ip-reaper:" + number
	out, err := c.run("make", "publish-chart", "VERSION="+version, "CHART="+chart)
	if err != nil {
		t.Fatalf("make publish-chart: %v\n%s", err, out)
	}
	helm, err := registry.NewClient(registry.ClientOptPlainHTTP())
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := helm.Pull(chart)
	if err != nil {
		t.Fatal(err)
	}
	if want := "digest=" + pulled.Manifest.Digest + "\n"; !strings.HasSuffix(out, want) {
		t.Errorf("make publish-chart: there is no %q at the end of\n%s", want, out)
	}
	want, err := os.ReadFile(filepath.Join(c.dir, "dist", "ip-reaper-"+number+".tgz"))
	if err != nil {
		t.Fatal(err)
	}
	if string(pulled.Chart.Data) != string(want) {
		t.Error("helm pulls another archive than the one of the release")
	}
	about, err := json.Marshal(pulled.Chart.Meta)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"version":"` + number + `"`; !strings.Contains(string(about), want) {
		t.Errorf("the chart is of another version than %s: %s", number, about)
	}
}
