package calico

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// An issuer signs certificates.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// writeCertificates writes a CA certificate, and the certificates and keys of the server and of a
// client, into etcd's folder.
func (e *Etcd) writeCertificates() error {
	var ca issuer
	for _, name := range []string{"ca", "server", "client"} {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(time.Now().UnixNano()),
			Subject:      pkix.Name{CommonName: name},
			NotBefore:    time.Now().Add(-time.Hour),
			NotAfter:     time.Now().Add(24 * time.Hour),
			KeyUsage:     x509.KeyUsageDigitalSignature,
			ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		}
		if name == "ca" {
			template.IsCA, template.BasicConstraintsValid = true, true
			template.KeyUsage, template.ExtKeyUsage, template.IPAddresses = x509.KeyUsageCertSign, nil, nil
		}
		issued, err := e.issue(name, template, ca)
		if err != nil {
			return fmt.Errorf("issue certificate %s: %w", name, err)
		}
		if name == "ca" {
			ca = issued
		}
	}
	e.CAFile = filepath.Join(e.Dir, "ca.pem")
	e.CertFile, e.KeyFile = filepath.Join(e.Dir, "client.pem"), filepath.Join(e.Dir, "client.key")
	return nil
}

// issue makes a key, has its certificate signed by the issuer, or by the key itself if there is no
// issuer yet, and writes both.
func (e *Etcd) issue(name string, template *x509.Certificate, by issuer) (issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return issuer{}, err
	}
	if by.key == nil {
		by = issuer{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
	if err != nil {
		return issuer{}, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return issuer{}, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return issuer{}, err
	}
	return issuer{certificate, key}, errors.Join(
		writePEM(filepath.Join(e.Dir, name+".pem"), "CERTIFICATE", der),
		writePEM(filepath.Join(e.Dir, name+".key"), "PRIVATE KEY", keyDER))
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// loadTLS returns the configuration of a client that has the files. It may have no certificate of
// its own.
func loadTLS(caFile, certFile, keyFile string) (*tls.Config, error) {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("no certificate in %s", caFile)
	}
	config := &tls.Config{RootCAs: pool}
	if certFile != "" {
		certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return config, nil
}
