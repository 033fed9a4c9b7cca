package calico

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// EtcdConfig returns the configuration that NewEtcd needs. Endpoints, credentials and
// the names of files come from one source: the variables that Calico's own programs
// read.
//
// It returns an error if the variables contradict each other, if an endpoint is http and a variable
// for a credential or a certificate is set, if a file belongs to the pod's service account, or if
// it cannot be used. It checks all variables before it opens a file. No error contains a secret.
func EtcdConfig(env func(string) string) (clientv3.Config, error) {
	v := readEtcdVariables(env)
	if err := v.check(); err != nil {
		return clientv3.Config{}, err
	}
	c := clientv3.Config{
		Endpoints:   v.endpoints,
		DialTimeout: etcdTimeout,
		// Without keepalives, a connection to a host that is down would never end.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
		Logger:               zap.NewNop(), // the errors say the same
	}
	if v.username != "" {
		c.Username, c.Password = v.username, v.password
	}
	var err error
	c.TLS, err = v.tls()
	return c, err
}

// The variables of Calico's own programs.
const (
	envEndpoints = "ETCD_ENDPOINTS"
	envUsername  = "ETCD_USERNAME"
	envPassword  = "ETCD_PASSWORD"
	envCAFile    = "ETCD_CA_CERT_FILE"
	envCertFile  = "ETCD_CERT_FILE"
	envKeyFile   = "ETCD_KEY_FILE"
)

// etcdVariables are the values of Calico's variables.
type etcdVariables struct {
	endpoints                 []string
	username, password        string
	caFile, certFile, keyFile string
}

func readEtcdVariables(env func(string) string) etcdVariables {
	v := etcdVariables{
		username: env(envUsername), password: env(envPassword),
		caFile: env(envCAFile), certFile: env(envCertFile), keyFile: env(envKeyFile),
	}
	for endpoint := range strings.SplitSeq(env(envEndpoints), ",") {
		if endpoint = strings.TrimSpace(endpoint); endpoint != "" {
			v.endpoints = append(v.endpoints, strings.TrimSuffix(endpoint, "/"))
		}
	}
	return v
}

// check returns the first mistake found without opening a file.
func (v etcdVariables) check() error {
	if len(v.endpoints) == 0 {
		return errors.New("no etcd endpoints: set " + envEndpoints)
	}
	inClear := false
	for i, endpoint := range v.endpoints {
		// The endpoint is not quoted: it may contain a password.
		if !isEndpoint(endpoint) {
			return fmt.Errorf("%s: item %d is not https://host:port or http://host:port; a user and a password belong in %s and %s",
				envEndpoints, i+1, envUsername, envPassword)
		}
		inClear = inClear || strings.HasPrefix(endpoint, "http:")
	}
	for _, guard := range []struct{ name, value string }{
		{envUsername, v.username}, {envPassword, v.password},
		{envCAFile, v.caFile}, {envCertFile, v.certFile}, {envKeyFile, v.keyFile},
	} {
		if inClear && guard.value != "" {
			return fmt.Errorf("%s has an http endpoint but %s is set: http is not encrypted and uses no certificates, so use https, or unset %s",
				envEndpoints, guard.name, guard.name)
		}
	}
	if v.username != "" && v.password == "" { // the client would not log in
		return fmt.Errorf("etcd has a username but no password: set %s, or unset %s", envPassword, envUsername)
	}
	if (v.certFile == "") != (v.keyFile == "") {
		return fmt.Errorf("etcd client certificate: set %s and %s together", envCertFile, envKeyFile)
	}
	return nil
}

// tls reads the certificates and the key. It returns nil if none is named.
func (v etcdVariables) tls() (*tls.Config, error) {
	if v.caFile == "" && v.certFile == "" {
		return nil, nil //nolint:nilnil // nil means no TLS to the client
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if v.caFile != "" {
		authorities, err := readFile(envCAFile, v.caFile)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("%s: %s has no certificate in PEM form", envCAFile, v.caFile)
		}
	}
	if v.certFile != "" {
		cert, err := readFile(envCertFile, v.certFile)
		if err != nil {
			return nil, err
		}
		key, err := readFile(envKeyFile, v.keyFile)
		if err != nil {
			return nil, err
		}
		certificate, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("etcd client certificate of %s and %s: %w", envCertFile, envKeyFile, err)
		}
		c.Certificates = []tls.Certificate{certificate}
	}
	return c, nil
}

// serviceAccountDirs hold the token of the pod's service account. A file in them must not become a
// credential for another server.
var serviceAccountDirs = []string{"/var/run/secrets/kubernetes.io", "/run/secrets/kubernetes.io"}

// readFile reads the file that a variable names, unless it belongs to the pod's service account, by
// its name or with all symbolic links resolved.
func readFile(variable, path string) ([]byte, error) {
	named, _ := filepath.Abs(path)
	resolved, err := filepath.EvalSymlinks(path)
	if err == nil {
		resolved, err = filepath.Abs(resolved)
	}
	for _, dir := range serviceAccountDirs {
		linked, none := filepath.EvalSymlinks(dir)
		if strings.HasPrefix(named, dir+"/") || strings.HasPrefix(resolved, dir+"/") || none == nil && strings.HasPrefix(resolved, linked+"/") {
			return nil, fmt.Errorf("%s: %s belongs to the pod's service account: use another file", variable, path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	content, err := os.ReadFile(resolved)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	return content, nil
}

// endpointForm is the form of an endpoint. The Helm chart's schema has it too.
var endpointForm = regexp.MustCompile(`^https?://([A-Za-z0-9._-]+|\[([0-9A-Fa-f:.]+)\]):([1-9][0-9]{0,4})$`)

func isEndpoint(text string) bool {
	parts := endpointForm.FindStringSubmatch(text)
	if parts == nil {
		return false
	}
	ip, port := parts[2], parts[3]
	if ip != "" {
		if addr, err := netip.ParseAddr(ip); err != nil || !addr.Is6() {
			return false
		}
	}
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil
}
