package main

import (
	"bytes"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// What is published is the archive, and a version that is published stays what it is.
func TestThePublishedImageHasTheDigestOfTheArchive(t *testing.T) {
	crane := filepath.Join(t.TempDir(), "crane")
	if out, err := exec.Command("go", "build", "-o", crane, "github.com/google/go-containerregistry/cmd/crane").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := httptest.NewServer(registry.New())
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/ip-reaper"
	publish := func(m made, tag string) (string, error) {
		out, err := exec.Command("./publish.sh", crane, m.archive, repository+":"+tag).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}

	both := makeImage(t, program(t, "linux/amd64"), program(t, "linux/arm64"))
	for range 2 { // the second time, it is there already
		if got, err := publish(both, "v1.2.3"); err != nil || !strings.HasSuffix(got, "\ndigest="+both.digest) {
			t.Fatalf("published as %q, %v, want %s", got, err, both.digest)
		}
	}
	ref, err := name.ParseReference(repository + ":v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(pulled); err != nil {
		t.Error(err)
	}
	want, err := both.index(t).RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pulled.RawManifest(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the registry has another index, %v:\n%s\nwant\n%s", err, got, want)
	}

	other := makeImage(t, program(t, "linux/amd64"))
	if out, err := publish(other, "v1.2.3"); err == nil || !strings.Contains(out, "is published already, as "+both.digest) {
		t.Errorf("another image under the same tag: %v\n%s", err, out)
	}
	if got, err := remote.Head(ref); err != nil || got.Digest.String() != both.digest {
		t.Errorf("the tag has %v, %v, want %s still", got, err, both.digest)
	}
	if out, err := publish(other, "v1.2.4"); err != nil {
		t.Errorf("another image under another tag: %v\n%s", err, out)
	}
}
