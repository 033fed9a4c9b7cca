package azurecns

import (
	"cmp"
	_ "embed"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
