package azurecns

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ip-reaper/ip-reaper/backends/azurecns/cnstest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// A node's CNS is asked only if the policy says so. A backend that is off opens for a restore,
// even if its files are missing.
func TestBackendIsOffUnlessThePolicyTurnsItOn(t *testing.T) {
	broken := &Settings{Address: "https://localhost:1", TLS: TLS{CAFile: filepath.Join(t.TempDir(), "none")}}
	for _, tt := range []struct {
		name     string
		env      plugin.Env
		settings *Settings
		opens    bool
		unused   bool
	}{
		{"by default", plugin.Env{}, new(Settings), false, true},
		{"an address alone", plugin.Env{}, &Settings{Address: "http://localhost:10091"}, false, true},
		{"on", plugin.Env{On: true}, new(Settings), true, false},
		{"off", plugin.Env{Off: true}, new(Settings), true, false},
		{"on, without its file", plugin.Env{On: true}, broken, false, false},
		{"off, without its file", plugin.Env{Off: true}, broken, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := Plugin().Open(t.Context(), tt.env, tt.settings)
			if (err == nil) != tt.opens || errors.Is(err, plugin.ErrUnused) != tt.unused || tt.opens && b.Name() != Plugin().Name {
				t.Errorf("opened as %v, %v", b, err)
			}
			var input *ipam.InputError
			if !tt.opens && !tt.unused && !errors.As(err, &input) {
				t.Errorf("%v is no mistake of the operator's", err)
			}
		})
	}
}

// Without certificates, only the node itself is asked.
func TestAddresses(t *testing.T) {
	for address, good := range map[string]bool{
		"": true, "http://localhost:10090": true, "http://127.0.0.1:1": true, "http://[::1]:10090": true,
		"https://10.0.0.4:10091": true, "https://cns.example.com:443": true, "https://[fd00::4]:10091": true,
		"http://10.0.0.4:10090": false, "http://localhost": false, "localhost:10090": false, "http://localhost:10090/": false,
		"http://localhost:0": false, "https://user:hunter2@localhost:1": false, "http://localhost.example.com:1": false, "unix:///run/cns": false,
	} {
		errs := (&Settings{Address: address}).Validate(field.NewPath("x"))
		if (len(errs) == 0) != good || strings.Contains(fmt.Sprint(errs), "hunter2") {
			t.Errorf("%q: %v", address, errs)
		}
	}
}

// CNS may serve https: its certificate is checked.
func TestHTTPS(t *testing.T) {
	cns := cnstest.New()
	fill(cns)
	server := httptest.NewTLSServer(cns)
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := New(&Settings{Address: server.URL, TLS: TLS{CAFile: ca}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.list(t.Context()); err != nil {
		t.Error(err)
	}
	wantListError(t, server.URL, "certificate")
}

func TestFilesThatCannotBeUsedAreErrors(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	const https = "https://localhost:10091"
	for _, tt := range []struct {
		settings Settings
		want     string
	}{
		{Settings{https, TLS{CAFile: none}}, "caFile: open " + none},
		{Settings{https, TLS{CAFile: junk}}, "junk has no certificate in PEM form"},
		{Settings{https, TLS{CertFile: junk, KeyFile: junk}}, "certFile and keyFile: tls"},
		{Settings{"", TLS{CAFile: junk}}, "use https, or remove tls"},
	} {
		if _, err := New(&tt.settings); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.settings, err, tt.want)
		}
	}
	s := &Settings{https, TLS{CertFile: junk}}
	if errs := s.Validate(field.NewPath("x")); len(errs) != 1 {
		t.Errorf("a certificate without a key: %v", errs)
	}
}
