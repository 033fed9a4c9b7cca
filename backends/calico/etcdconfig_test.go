package calico

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const secret = "s3cret-Passw0rd"

// certificate writes a certificate and its key into a directory of the test.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))),
		file(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
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
	password := file(t, secret+"\r\n")
	whole := environment("ETCD_ENDPOINTS", " https://a:2379, ,https://b:2379,", "ETCD_USERNAME", "calico", "ETCD_PASSWORD", " "+secret+" ",
		"ETCD_CA_CERT_FILE", ca, "ETCD_CERT_FILE", cert, "ETCD_KEY_FILE", key)
	for _, tt := range []struct {
		name      string
		options   EtcdOptions
		env       func(string) string
		endpoints []string
		user      string
		password  string
		ca, certs bool
	}{
		{"of the policy", EtcdOptions{Endpoints: []string{"http://a:2379"}}, environment(), []string{"http://a:2379"}, "", "", false, false},
		{"of the environment", EtcdOptions{}, whole, []string{"https://a:2379", "https://b:2379"}, "calico", " " + secret + " ", true, true},
		{"of the policy before the environment", EtcdOptions{
			Endpoints: []string{"https://c:2379"}, Username: "reaper", PasswordFile: password, CAFile: cert, CertFile: cert, KeyFile: key,
		}, environment("ETCD_ENDPOINTS", "https://a:2379", "ETCD_USERNAME", "calico", "ETCD_PASSWORD", "other",
			"ETCD_CA_CERT_FILE", "/none", "ETCD_CERT_FILE", "/none", "ETCD_KEY_FILE", "/none"),
			[]string{"https://c:2379"}, "reaper", secret, true, true},
		{"of both", EtcdOptions{Endpoints: []string{"https://c:2379"}, PasswordFile: password}, whole, []string{"https://c:2379"}, "calico", secret, true, true},
		{"a password without a user", EtcdOptions{Endpoints: []string{"https://c:2379"}}, environment("ETCD_PASSWORD", secret), []string{"https://c:2379"}, "", "", false, false},
		{"an authority only", EtcdOptions{Endpoints: []string{"https://c:2379"}, CAFile: ca}, environment(), []string{"https://c:2379"}, "", "", true, false},
		{"a client certificate only", EtcdOptions{Endpoints: []string{"https://c:2379"}, CertFile: cert, KeyFile: key}, environment(), []string{"https://c:2379"}, "", "", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := tt.options.Config(tt.env)
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
	halfKey := file(t, "-----BEGIN PRIVATE KEY-----\n"+secret+"\n-----END PRIVATE KEY-----\n")
	none := filepath.Join(t.TempDir(), "none")
	endpoints := []string{"https://a:2379"}
	for _, tt := range []struct {
		name    string
		options EtcdOptions
		env     func(string) string
		says    string
	}{
		{"no endpoints", EtcdOptions{}, environment("ETCD_PASSWORD", secret), "ETCD_ENDPOINTS"},
		{"empty endpoints", EtcdOptions{}, environment("ETCD_ENDPOINTS", " , "), "ETCD_ENDPOINTS"},
		{"no password file", EtcdOptions{Endpoints: endpoints, Username: "u", PasswordFile: none}, environment(), "passwordFile"},
		{"the password for its file", EtcdOptions{Endpoints: endpoints, Username: "u", PasswordFile: secret}, environment(), "passwordFile"},
		{"a directory for the password", EtcdOptions{Endpoints: endpoints, Username: "u", PasswordFile: t.TempDir()}, environment(), "passwordFile"},
		{"no password", EtcdOptions{Endpoints: endpoints, Username: "u"}, environment(), "no password"},
		{"an empty password file", EtcdOptions{Endpoints: endpoints, Username: "u", PasswordFile: file(t, "\n")}, environment("ETCD_PASSWORD", secret), "no password"},
		{"no authority", EtcdOptions{Endpoints: endpoints, CAFile: none}, environment("ETCD_PASSWORD", secret), none},
		{"an authority that is no certificate", EtcdOptions{Endpoints: endpoints, CAFile: junk}, environment(), junk},
		{"a key for an authority", EtcdOptions{Endpoints: endpoints, CAFile: key}, environment(), "no certificate in PEM form"},
		{"a certificate without a key", EtcdOptions{Endpoints: endpoints, CertFile: cert}, environment(), "together"},
		{"a key without a certificate", EtcdOptions{Endpoints: endpoints, KeyFile: key}, environment(), "together"},
		{"no certificate", EtcdOptions{Endpoints: endpoints, CertFile: none, KeyFile: key}, environment(), none},
		{"no key", EtcdOptions{Endpoints: endpoints, CertFile: cert, KeyFile: none}, environment(), none},
		{"a certificate that is no certificate", EtcdOptions{Endpoints: endpoints, CertFile: junk, KeyFile: key}, environment(), "client certificate"},
		{"a key that is no key", EtcdOptions{Endpoints: endpoints, CertFile: cert, KeyFile: junk}, environment(), "client certificate"},
		{"a key that is broken", EtcdOptions{Endpoints: endpoints, CertFile: cert, KeyFile: halfKey}, environment(), "client certificate"},
		{"the key of another certificate", EtcdOptions{Endpoints: endpoints, CertFile: cert, KeyFile: other}, environment(), "client certificate"},
		{"in the environment", EtcdOptions{}, environment("ETCD_ENDPOINTS", "https://a:2379", "ETCD_CA_CERT_FILE", none), none},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.options.Config(tt.env)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("Config: %v, want %q in an error", err, tt.says)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error contains the secret: %v", err)
			}
		})
	}
}
