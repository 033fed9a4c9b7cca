package azurecns

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// Plugin describes the backend. It is not used unless the policy turns it on.
func Plugin() plugin.Plugin {
	return plugin.Plugin{
		Name:     Name,
		Summary:  "Addresses that Azure CNS has assigned on a node (off, unless `backends.azurecns` has `enabled: true`)",
		Scope:    plugin.Node,
		Settings: func() any { return new(Settings) },
		Open: plugin.With(func(env plugin.Env, s *Settings) (ipam.Backend, error) {
			if !env.On && !env.Off {
				return nil, plugin.ErrUnused
			}
			b, err := New(s)
			if err != nil && env.Off {
				b, err = New(new(Settings)) // its files may be gone
			}
			if err != nil {
				return nil, ipam.BadInput(err, "")
			}
			return b, nil
		}),
	}
}

// defaultAddress is where CNS listens on a node.
const defaultAddress = "http://localhost:10090"

// Settings are backends.azurecns of a policy.
type Settings struct {
	// Address is where CNS listens: http://host:port of the node itself, or
	// https://host:port. Empty means http://localhost:10090.
	Address string `json:"address,omitzero"`

	// TLS names the certificates for an https address.
	TLS TLS `json:"tls,omitzero"`
}

var (
	//go:embed schema.json
	schemaPart []byte
	//go:embed example.yaml
	examplePart []byte
)

// Schema implements policy.Schemer.
func (*Settings) Schema() []byte { return schemaPart }

// Example implements policy.Exampler.
func (*Settings) Example() []byte { return examplePart }

// address returns the address, or its default.
func (s *Settings) address() string { return cmp.Or(s.Address, defaultAddress) }

// addressForm is the form of an address. Without certificates, only the node itself is trusted.
// The schema requires the same form.
var addressForm = regexp.MustCompile(`^(http://(localhost|127[.]0[.]0[.]1|\[::1\]):[1-9][0-9]{0,4}` +
	`|https://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[1-9][0-9]{0,4})$`)

// Validate implements policy.Validator.
func (s *Settings) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !addressForm.MatchString(s.address()) {
		errs = append(errs, field.Invalid(at.Child("address"), field.OmitValueType{},
			"must be http://localhost:port, or https://host:port, such as "+defaultAddress))
	}
	if t := s.TLS; (t.CertFile == "") != (t.KeyFile == "") {
		errs = append(errs, field.Required(at.Child("tls"), "certFile and keyFile must be set together"))
	}
	return errs
}

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
