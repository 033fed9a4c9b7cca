package calico

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// EtcdOptions say how Calico's etcd is reached. What is empty is taken from the
// variables that Calico's own programs read.
//
// A policy is kept in a ConfigMap, so there is no field for a password.
type EtcdOptions struct {
	// Endpoints are http or https URLs of a host and a port, and of nothing else;
	// if nil, ETCD_ENDPOINTS, separated by commas. They are never empty otherwise.
	Endpoints []string `json:"endpoints,omitzero"`

	Username     string `json:"username,omitzero"`     // ETCD_USERNAME; never empty if PasswordFile is not
	PasswordFile string `json:"passwordFile,omitzero"` // instead of the password itself, ETCD_PASSWORD
	CAFile       string `json:"caFile,omitzero"`       // ETCD_CA_CERT_FILE

	// CertFile and KeyFile are both set or both empty.
	CertFile string `json:"certFile,omitzero"` // ETCD_CERT_FILE
	KeyFile  string `json:"keyFile,omitzero"`  // ETCD_KEY_FILE
}

// Config reads the files and returns the configuration that NewEtcd needs. It
// returns an error if there is no endpoint, if a username has no password, if a
// certificate comes without its key, or if a file cannot be used. No error contains
// a secret.
func (o EtcdOptions) Config(env func(string) string) (clientv3.Config, error) {
	o = o.complete(env)
	c := clientv3.Config{
		Endpoints:   o.Endpoints,
		Username:    o.Username,
		DialTimeout: etcdTimeout,
		// Without keepalives, a connection to a host that is down would never end.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
		Logger:               zap.NewNop(), // the errors say the same
	}
	if len(c.Endpoints) == 0 {
		return c, errors.New("no etcd endpoints: set backends.calico.etcd.endpoints or ETCD_ENDPOINTS")
	}
	if o.Username != "" {
		password, err := o.password(env)
		if err != nil {
			return c, err
		}
		if password == "" { // the client would not log in
			return c, errors.New("etcd has a username and no password: set backends.calico.etcd.passwordFile or ETCD_PASSWORD")
		}
		c.Password = password
	}
	var err error
	c.TLS, err = o.tls()
	return c, err
}

// complete fills empty fields from Calico's environment variables.
func (o EtcdOptions) complete(env func(string) string) EtcdOptions {
	if len(o.Endpoints) == 0 {
		for endpoint := range strings.SplitSeq(env("ETCD_ENDPOINTS"), ",") {
			if endpoint = strings.TrimSpace(endpoint); endpoint != "" {
				o.Endpoints = append(o.Endpoints, endpoint)
			}
		}
	}
	for _, v := range []struct {
		field *string
		name  string
	}{
		{&o.Username, "ETCD_USERNAME"},
		{&o.CAFile, "ETCD_CA_CERT_FILE"},
		{&o.CertFile, "ETCD_CERT_FILE"},
		{&o.KeyFile, "ETCD_KEY_FILE"},
	} {
		if *v.field == "" {
			*v.field = env(v.name)
		}
	}
	return o
}

// password returns the user's password.
func (o EtcdOptions) password(env func(string) string) (string, error) {
	if o.PasswordFile == "" {
		return env("ETCD_PASSWORD"), nil
	}
	data, err := os.ReadFile(o.PasswordFile)
	if err != nil {
		// The field may hold the password itself by mistake, and must not be
		// logged.
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			err = path.Err
		}
		return "", fmt.Errorf("passwordFile cannot be read: %w", err)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// tls reads the certificates and the key. It returns nil if none is named.
func (o EtcdOptions) tls() (*tls.Config, error) {
	if o.CAFile == "" && o.CertFile == "" && o.KeyFile == "" {
		return nil, nil //nolint:nilnil // nil means no TLS to the client
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		data, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("etcd CA certificate: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("etcd CA certificate: %s has no certificate in PEM form", o.CAFile)
		}
	}
	if o.CertFile == "" && o.KeyFile == "" {
		return c, nil
	}
	if o.CertFile == "" || o.KeyFile == "" {
		return nil, errors.New("etcd client certificate: set certificate and key together")
	}
	certificate, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("etcd client certificate: %w", err)
	}
	c.Certificates = []tls.Certificate{certificate}
	return c, nil
}
