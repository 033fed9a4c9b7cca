package run_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// password must not be printed.
const password = "hunter2-s3cret"

// withUser puts user and password into a URL.
func withUser(user, url string) string { return strings.Replace(url, "://", "://"+user+"@", 1) }

// startLockedGateway starts a gateway that wants the password from the user operator, over
// TLS, with the certificate of httptest's servers. It returns its URL and a file with the
// certificate.
func startLockedGateway(t *testing.T) (url, certFile string) {
	t.Helper()
	issuer := httptest.NewTLSServer(nil)
	issuer.Close()
	key, err := x509.MarshalPKCS8PrivateKey(issuer.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: issuer.Certificate().Raw}, keyFile: {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const users = "basic_auth_users: {operator: $2a$04$3tekmN937qnCV37J1wRjW.e5GcKpnjsZInxkao5ygbKmkCvgqZgzG}\n"
	g := startGateway(t, users+fmt.Sprintf("tls_server_config: {cert_file: %q, key_file: %q}\n", certFile, keyFile))
	return strings.Replace(g.url, "http:", "https:", 1), certFile
}

// If figures cannot be pushed, the run releases what it would release, warns, and tells no
// password. A gateway that hangs is waited for a while.
func TestEveryTroubleOfTheGateway(t *testing.T) {
	f := newMetricsFixture(t)
	var locked string
	locked, f.trusted = startLockedGateway(t)
	hangs := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // who has not read it does not notice that the client is gone
		<-r.Context().Done()
	}))
	t.Cleanup(hangs.Close)
	down := httptest.NewTLSServer(nil)
	down.Close()
	troubles := []struct {
		name, url, password string
		says                string // in the warning; empty if there is no trouble
	}{
		{"down", down.URL, "wrong-" + password, "connection refused"},
		{"is the API server", f.Config.Host, "wrong-" + password, "push metrics: "},
		{"wants a password", locked, "wrong-" + password, "unexpected status code 401"},
		{"gets its password", locked, password, ""},
		{"hangs", hangs.URL, password, "the time is over"},
	}
	if testing.Short() {
		troubles = troubles[:4]
	}
	for _, tt := range troubles {
		t.Run(tt.name, func(t *testing.T) {
			f.leak("web-0")
			result := f.push(reap.ExitDone, withUser("operator:"+tt.password, tt.url), atOnce)
			if result.Report.Summary.Released != 2 {
				t.Errorf("the run did %+v, want 2 released", result.Report.Summary)
			}
			if warns := strings.Contains(result.Stderr, `"msg":"metrics were not pushed"`); warns != (tt.says != "") || !strings.Contains(result.Stderr, tt.says) {
				t.Errorf("it warns: %v, want that %q:\n%s", warns, tt.says, result.Stderr)
			}
			if all := result.Stdout + result.Stderr; strings.Contains(all, password) || strings.Contains(all, "operator") {
				t.Errorf("it tells the credentials:\n%s", all)
			}
		})
	}
}
