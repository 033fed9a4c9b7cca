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
	var endpoints []string
	for endpoint := range strings.SplitSeq(env(envEndpoints), ",") {
		if endpoint = strings.TrimSpace(endpoint); endpoint != "" {
			endpoints = append(endpoints, strings.TrimSuffix(endpoint, "/"))
		}
	}
	if err := checkEtcd(endpoints, env); err != nil {
		return clientv3.Config{}, err
	}
	c := clientv3.Config{
		Endpoints:   endpoints,
		DialTimeout: etcdTimeout,
		// Without keepalives, a connection to a host that is down would never end.
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
		Logger:               zap.NewNop(), // the errors say the same
	}
	if user := env(envUsername); user != "" {
		c.Username, c.Password = user, env(envPassword)
	}
	var err error
	c.TLS, err = etcdTLS(env(envCAFile), env(envCertFile), env(envKeyFile))
	return c, err
}

// The variables of Calico's own programs.
const (
	envDatastore = "DATASTORE_TYPE"
	envEndpoints = "ETCD_ENDPOINTS"
	envUsername  = "ETCD_USERNAME"
	envPassword  = "ETCD_PASSWORD"
	envCAFile    = "ETCD_CA_CERT_FILE"
	envCertFile  = "ETCD_CERT_FILE"
	envKeyFile   = "ETCD_KEY_FILE"
)

// checkEtcd returns the first mistake found without opening a file.
func checkEtcd(endpoints []string, env func(string) string) error {
	if len(endpoints) == 0 {
		return errors.New("no etcd endpoints: set " + envEndpoints)
	}
	inClear := false
	for i, endpoint := range endpoints {
		// The endpoint is not quoted: it may contain a password.
		if !isEndpoint(endpoint) {
			return fmt.Errorf("%s: item %d is not https://host:port or http://host:port; a user and a password belong in %s and %s",
				envEndpoints, i+1, envUsername, envPassword)
		}
		inClear = inClear || strings.HasPrefix(endpoint, "http:")
	}
	for _, guard := range []string{envUsername, envPassword, envCAFile, envCertFile, envKeyFile} {
		if inClear && env(guard) != "" {
			return fmt.Errorf("%s has an http endpoint but %s is set: http is not encrypted and uses no certificates, so use https, or unset %s",
				envEndpoints, guard, guard)
		}
	}
	if env(envUsername) != "" && env(envPassword) == "" { // the client would not log in
		return fmt.Errorf("etcd has a username but no password: set %s, or unset %s", envPassword, envUsername)
	}
	if (env(envCertFile) == "") != (env(envKeyFile) == "") {
		return fmt.Errorf("etcd client certificate: set %s and %s together", envCertFile, envKeyFile)
	}
	return nil
}

// etcdTLS reads the certificates and the key. It returns nil if none is named.
func etcdTLS(caFile, certFile, keyFile string) (*tls.Config, error) {
	if caFile == "" && certFile == "" {
		return nil, nil //nolint:nilnil // nil means no TLS to the client
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		authorities, err := readFile(envCAFile, caFile)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("%s: %s has no certificate in PEM form", envCAFile, caFile)
		}
	}
	if certFile != "" {
		cert, err := readFile(envCertFile, certFile)
		if err != nil {
			return nil, err
		}
		key, err := readFile(envKeyFile, keyFile)
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
