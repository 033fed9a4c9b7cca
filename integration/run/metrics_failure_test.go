package run_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
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

// If figures cannot be pushed, the run releases what it would release, warns, and ends
// soon.
func TestEveryTroubleOfTheGateway(t *testing.T) {
	f := newMetricsFixture(t)
	var locked string
	locked, f.trusted = startLockedGateway(t)
	answers := func(code int) string {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "not today", code)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	hangs := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // who has not read it does not notice that the client is gone
		<-r.Context().Done()
	}))
	t.Cleanup(hangs.Close)
	troubles := []struct {
		name, url string
		says      string // in the warning
		takes     time.Duration
	}{
		{"down", closed(t), "connection refused", 0},
		{"answers 400", answers(http.StatusBadRequest), "unexpected status code 400 while pushing to", 0},
		{"is the API server", f.Config.Host, "push metrics: ", 0},
		{"wants a password", locked, "unexpected status code 401", 0},
		{"answers 500", answers(http.StatusInternalServerError), "not today", 0},
		{"has no such path", answers(http.StatusNotFound) + "/somewhere", "unexpected status code 404", 0},
		{"hangs", hangs.URL, "the time is over", 10 * time.Second},
	}
	if testing.Short() {
		troubles = troubles[:4]
	}
	for _, tt := range troubles {
		t.Run(tt.name, func(t *testing.T) {
			f.leak("web-0")
			began := time.Now()
			result := f.push(withUser("operator:wrong-"+password, tt.url), atOnce).EndT(f, reap.ExitDone)
			if took := time.Since(began); took < tt.takes || took > tt.takes+20*time.Second {
				t.Errorf("the run took %v", took)
			}
			if result.Report.Summary.Released != 2 {
				t.Errorf("the run did %+v, want 2 released", result.Report.Summary)
			}
			if !strings.Contains(result.Stderr, `"msg":"metrics were not pushed"`) || !strings.Contains(result.Stderr, tt.says) {
				t.Errorf("it does not warn that %q:\n%s", tt.says, result.Stderr)
			}
			if all := result.Stdout + result.Stderr; strings.Contains(all, password) || strings.Contains(all, "operator") {
				t.Errorf("it tells the credentials:\n%s", all)
			}
		})
	}
}

// closed is the URL of a server that is down.
func closed(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return "https://" + listener.Addr().String()
}

func TestPasswordOpensTheGatewayAndIsNotTold(t *testing.T) {
	f := newMetricsFixture(t)
	url, trusted := startLockedGateway(t)
	f.trusted = trusted
	result := f.push(withUser("operator:"+password, url), patient, "-v").EndT(f, reap.ExitDone)
	if all := result.Stdout + result.Stderr; strings.Contains(all, password) || strings.Contains(all, "metrics were not pushed") {
		t.Errorf("it tells the password, or could not push:\n%s", all)
	}
}

// A URL that is none of a gateway ends the run before it begins.
func TestWrongURLIsAMistakeInUsage(t *testing.T) {
	f := newMetricsFixture(t)
	for _, url := range []string{
		"pushgateway:9091", "http://operator:" + password + "%@pushgateway", "https://", f.gateway.url + "/metrics",
		withUser("operator:"+password, f.gateway.url), // in the clear
	} {
		result, err := f.push(url, atOnce).Wait()
		f.must(err)
		if result.ExitCode != reap.ExitUsage || !strings.Contains(result.Stderr, "ip-reaper: --push-url: ") || result.Stdout != "" {
			t.Errorf("%s: exit code %d, want %d:\n%s", url, result.ExitCode, reap.ExitUsage, result.Stderr)
		}
		if strings.Contains(result.Stderr, password) {
			t.Errorf("it tells the password:\n%s", result.Stderr)
		}
	}
	if asked := f.toReaper.Requests(); len(asked) > 0 {
		t.Errorf("the API server was asked for %v", asked)
	}
}

// A run that is interrupted pushes how far it came.
func TestInterruptedRunPushes(t *testing.T) {
	f := newMetricsFixture(t)
	f.leak("web-0")
	gate := proxy.NewGate()
	f.toReaper.Before(proxy.On("list pods"), gate.Hook)
	p := f.push(f.gateway.url, atOnce)
	<-gate.Arrived()
	f.must(p.Signal(syscall.SIGTERM))
	report := p.EndT(f, reap.ExitSignal).Report
	gate.Open()
	f.gateway.want(f.figuresOf(report, reap.ExitSignal))
	f.wantSuccess(time.Time{})
}
