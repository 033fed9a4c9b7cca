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
	"sync/atomic"
	"testing"

	containers "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"helm.sh/helm/v4/pkg/registry"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
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

// A version that a registry does not have is pushed. Where the registry does not say that, whatever
// else it says, nothing is.
func TestNothingIsPushedWhereItIsNotKnownWhatIsThere(t *testing.T) {
	c := written(t, nil)
	top, err := layout.Write(c.dir+"/layout", empty.Index)
	must(t, err)
	must(t, top.AppendImage(empty.Image))
	if out, err := c.run("tar", "-c", "-f", "image.tar", "-C", "layout", "."); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	root, err := assets.Root()
	must(t, err)
	crane := built(t, "image", "github.com/google/go-containerregistry/cmd/crane")
	for _, tt := range []struct {
		name   string
		status int    // of its answer about the tag; 0 for that of the registry
		body   string // of that answer
		pushed bool
	}{
		{name: "a repository that is not there", pushed: true},
		{name: "a tag that is not there", status: 404, body: `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`, pushed: true},
		{name: "no reason for what is not there", status: 404, pushed: true},
		{name: "a page of something else", status: 404, body: "<html>\nno such page\n</html>"},
		{name: "no login", status: 401, body: `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`},
		{name: "no right to read", status: 403, body: `{"errors":[{"code":"DENIED","message":"requested access to the resource is denied"}]}`},
		{name: "a request that it does not take", status: 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inner := containers.New(containers.Logger(log.New(io.Discard, "", 0)))
			var writes atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method != http.MethodGet && r.Method != http.MethodHead:
					writes.Add(1)
				case strings.HasSuffix(r.URL.Path, "/manifests/v1.2.3") && tt.status != 0:
					w.WriteHeader(tt.status)
					_, _ = io.WriteString(w, tt.body)
					return
				}
				inner.ServeHTTP(w, r)
			}))
			defer server.Close()
			image := strings.TrimPrefix(server.URL, "http://") + "/ip-reaper:v1.2.3"
			out, err := c.run(filepath.Join(root, "tools/image/publish.sh"), crane, "image.tar", image)
			if (err == nil) != tt.pushed || (writes.Load() != 0) != tt.pushed {
				t.Errorf("%v, %d writes, want it pushed: %t\n%s", err, writes.Load(), tt.pushed, out)
			}
			if want := "nothing is pushed: it is not known whether " + image + " is published already\n"; !tt.pushed && !strings.HasSuffix(out, want) {
				t.Errorf("there is no %q at the end of\n%s", want, out)
			}
		})
	}
}
