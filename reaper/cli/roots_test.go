package cli

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
)

// In the image there is no file with CA certificates; the program has its own.
func TestRootsAreThereWithoutFiles(t *testing.T) {
	const child = "IP_REAPER_TEST_ROOTS"
	if os.Getenv(child) != "" {
		roots, err := x509.SystemCertPool()
		if err != nil {
			t.Fatal(err)
		}
		if roots.Equal(x509.NewCertPool()) {
			t.Error("there are no roots")
		}
		return
	}
	empty := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), child+"=1", "SSL_CERT_DIR="+empty, "SSL_CERT_FILE="+empty+"/none")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
