package calico

import (
	"crypto/tls"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.uber.org/zap"
)

const secret = "s3cret-Passw0rd"

// certificate writes a certificate and its key into a directory of the test.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	files, err := transport.SelfCert(zap.NewNop(), t.TempDir(), []string{"127.0.0.1:1"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return files.CertFile, files.KeyFile
}

// file writes a file into a directory of the test.
func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// environment returns a lookup in the given environment variables.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestEtcdConfig(t *testing.T) {
	cert, key := certificate(t)
	ca, _ := certificate(t)
	for _, tt := range []struct {
		name      string
		env       []string
		endpoints []string
		user      string
		password  string
		ca, certs bool
	}{
		{"in the clear, without any credential", []string{envEndpoints, "http://a:2379"}, []string{"http://a:2379"}, "", "", false, false},
		{"everything", []string{
			envEndpoints, " https://a:2379, ,https://b:2379/,", envUsername, "calico", envPassword, " " + secret + " ",
			envCAFile, ca, envCertFile, cert, envKeyFile, key,
		}, []string{"https://a:2379", "https://b:2379"}, "calico", " " + secret + " ", true, true},
		{"an authority only", []string{envEndpoints, "https://c:2379", envCAFile, ca}, []string{"https://c:2379"}, "", "", true, false},
		{"a client certificate only", []string{envEndpoints, "https://c:2379", envCertFile, cert, envKeyFile, key},
			[]string{"https://c:2379"}, "", "", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := EtcdConfig(environment(tt.env...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.endpoints, c.Endpoints); diff != "" || c.Username != tt.user || c.Password != tt.password {
				t.Errorf("user %q, password %q, endpoints (-want +got):\n%s", c.Username, c.Password, diff)
			}
			if (c.TLS != nil) != (tt.ca || tt.certs) {
				t.Fatalf("TLS is configured: %v", c.TLS != nil)
			}
			if c.TLS != nil && ((c.TLS.RootCAs != nil) != tt.ca || (len(c.TLS.Certificates) == 1) != tt.certs ||
				c.TLS.InsecureSkipVerify || c.TLS.MinVersion < tls.VersionTLS12) {
				t.Errorf("TLS is %+v", c.TLS)
			}
			if c.DialTimeout <= 0 || c.DialKeepAliveTime <= 0 || c.Logger == nil {
				t.Errorf("timeouts %v and %v, logger %v", c.DialTimeout, c.DialKeepAliveTime, c.Logger)
			}
		})
	}
}

// The errors say what to do, and contain no secret.
func TestEtcdConfigErrors(t *testing.T) {
	cert, key := certificate(t)
	_, other := certificate(t)
	junk := file(t, secret)
	none := filepath.Join(t.TempDir(), "none")
	for _, tt := range []struct {
		name string
		env  []string // besides an https endpoint
		says string
	}{
		{"no endpoints", []string{envEndpoints, "", envPassword, secret}, "no etcd endpoints: set ETCD_ENDPOINTS"},
		{"no password", []string{envUsername, "u"}, "etcd has a username but no password: set ETCD_PASSWORD"},
		{"no authority", []string{envPassword, secret, envCAFile, none}, "ETCD_CA_CERT_FILE: lstat " + none},
		{"a directory for an authority", []string{envCAFile, t.TempDir()}, "is a directory"},
		{"an authority that is no certificate", []string{envCAFile, junk}, junk + " has no certificate in PEM form"},
		{"a certificate without a key", []string{envCertFile, cert}, "set ETCD_CERT_FILE and ETCD_KEY_FILE together"},
		{"no certificate", []string{envCertFile, none, envKeyFile, key}, "ETCD_CERT_FILE: lstat " + none},
		{"a key that is no key", []string{envCertFile, cert, envKeyFile, junk}, "etcd client certificate of ETCD_CERT_FILE"},
		{"the key of another certificate", []string{envCertFile, cert, envKeyFile, other}, "etcd client certificate of ETCD_CERT_FILE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := EtcdConfig(environment(append(tt.env, envEndpoints, "https://a:2379")...))
			wantError(t, err, tt.says)
		})
	}
}

// A token of the pod's service account never becomes an etcd credential, even through links.
func TestFilesOfTheServiceAccountAreRefused(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func(was []string) { serviceAccountDirs = was }(serviceAccountDirs)
	serviceAccountDirs = []string{root + "/account"}
	cert, key := certificate(t)
	content, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/account/..data", "/account-not"} {
		if err := os.MkdirAll(root+dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+dir+"/token", content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"/account/token": "..data/token", "/link": "account/token", "/dir": "account"} {
		if err := os.Symlink(to, root+name); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	config := func(keyFile string) error {
		_, err := EtcdConfig(environment(envEndpoints, "https://a:1", envCertFile, cert, envKeyFile, keyFile))
		return err
	}
	for _, name := range []string{root + "/account/token", root + "/account-not/../account/..data/token", root + "/link", root + "/dir/token", "link"} {
		wantError(t, config(name), "ETCD_KEY_FILE: "+name+" belongs to the pod's service account: use another file")
	}
	if err := config(root + "/account-not/token"); err != nil {
		t.Error(err)
	}
	serviceAccountDirs = []string{root + "/dir"} // a link
	wantError(t, config(root+"/account/token"), "belongs to the pod's service account")
}

// wantError fails the test unless the error says so, and contains no secret.
func wantError(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Fatalf("the error is %v, want %q", err, says)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the error contains the secret: %v", err)
	}
}

// Over http, no server proves its identity, and anyone on the way can read what
// is sent.
func TestNoCredentialOfEtcdGoesOverHTTP(t *testing.T) {
	for _, endpoints := range []string{"http://a:2379", "https://a:2379,http://b:2379", "http://a:2379,https://b:2379"} {
		for _, guard := range [][]string{
			{envUsername, "u", envPassword, secret}, {envPassword, secret}, {envUsername, "u"},
			{envCertFile, "/none", envKeyFile, "/none"}, {envKeyFile, "/none"}, {envCAFile, "/none"},
		} {
			_, err := EtcdConfig(environment(append([]string{envEndpoints, endpoints}, guard...)...))
			wantError(t, err, "ETCD_ENDPOINTS has an http endpoint but "+guard[0]+" is set")
		}
	}
}

// The client would send a password in the clear to an endpoint without a scheme.
func TestEndpointsOfEtcdAreURLsOfAHostAndAPort(t *testing.T) {
	for _, text := range []string{
		"https://etcd:2379", "http://10.0.0.1:1", "https://ETCD_0.a-b:65535", "https://[fd00::1]:2379", "https://[::ffff:10.0.0.1]:80", "https://etcd:2379/",
	} {
		if _, err := EtcdConfig(environment(envEndpoints, text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{
		"etcd:2379", "etcd", "unix://etcd:1", "unixs://etcd:1", "HTTPS://etcd:1", "//etcd:1", "https://:2379", "https://etcd", "https://etcd:", "https://etcd:0",
		"https://etcd:02379", "https://etcd:65536", "https://etcd:client", "https://etcd:2379/v3", "https://etcd:2379?a", "https://etcd:2379#a",
		"https://fd00::1:2379", "https://[10.0.0.1]:2379", "https://[fd00:::1]:2379", "https://a:1;https://b:1", "https://etcd:2379\\",
		"https://" + secret + "@etcd:2379", "https://root:" + secret + "@etcd:2379", "root:" + secret + "@etcd:2379", "https://root:" + secret,
	} {
		_, err := EtcdConfig(environment(envEndpoints, "https://a:1, "+text, envPassword, secret))
		wantError(t, err, "ETCD_ENDPOINTS: item 2 is not https://host:port")
	}
}

// The chart refuses what the program would refuse.
func TestChartHasTheFormOfAnEndpoint(t *testing.T) {
	text, err := os.ReadFile("../../deploy/helm/ip-reaper/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	form, err := json.Marshal(endpointForm.String())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"pattern": `+string(form)) {
		t.Errorf("values.schema.json does not have the pattern %s", form)
	}
}
