package azurecns

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
)

// TLS names files in PEM form on the node. Any of them may be empty, but a certificate and its
// key are set together. The zero TLS means the system's defaults.
type TLS struct {
	CAFile   string `json:"caFile,omitzero"` // empty: the system's
	CertFile string `json:"certFile,omitzero"`
	KeyFile  string `json:"keyFile,omitzero"`
}

// config reads the files for an address. It returns nil for the zero TLS.
func (t TLS) config(address string) (*tls.Config, error) {
	switch {
	case t == TLS{}:
		return nil, nil //nolint:nilnil // nil means the defaults to the client
	case !strings.HasPrefix(address, "https:"):
		return nil, fmt.Errorf("backends.azurecns.tls is set, but the address is %s: use https, or remove tls", address)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		data, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("backends.azurecns.tls.caFile: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("backends.azurecns.tls.caFile: %s has no certificate in PEM form", t.CAFile)
		}
	}
	if t.CertFile != "" {
		certificate, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("backends.azurecns.tls.certFile and keyFile: %w", err)
		}
		c.Certificates = []tls.Certificate{certificate}
	}
	return c, nil
}
