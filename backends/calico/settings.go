package calico

import (
	_ "embed"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Settings are backends.calico of a policy.
type Settings struct {
	// Datastore is empty where the policy does not have it, which means
	// DatastoreAuto.
	Datastore Datastore `json:"datastore,omitzero"`

	// Etcd is zero where Datastore is DatastoreKubernetes.
	Etcd EtcdOptions `json:"etcd,omitzero" policy:"secret"`
}

// Datastore says where Calico keeps its addresses.
type Datastore string

// The datastores of Calico.
const (
	// DatastoreAuto is the one that is found.
	DatastoreAuto Datastore = "auto"

	DatastoreKubernetes Datastore = "kubernetes"
	DatastoreEtcd       Datastore = "etcdv3"
)

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

// Hint implements policy.Hinter.
func (*Settings) Hint(name string) string {
	if name != "password" {
		return ""
	}
	return "a policy is no place for a password: name a file that has it in passwordFile, or set ETCD_PASSWORD"
}

// Validate implements policy.Validator.
func (s *Settings) Validate(at *field.Path, faulty func(*field.Path) bool) field.ErrorList {
	var errs field.ErrorList
	datastores := []Datastore{DatastoreAuto, DatastoreKubernetes, DatastoreEtcd}
	if s.Datastore != "" && !slices.Contains(datastores, s.Datastore) {
		errs = append(errs, field.NotSupported(at.Child("datastore"), string(s.Datastore), datastores))
	}
	if s.Datastore == DatastoreKubernetes && !reflect.ValueOf(s.Etcd).IsZero() {
		errs = append(errs, field.Forbidden(at.Child("etcd"), "must not be set where the datastore is kubernetes"))
	}
	return append(errs, s.Etcd.validate(at.Child("etcd"), faulty)...)
}

func (o EtcdOptions) validate(at *field.Path, faulty func(*field.Path) bool) field.ErrorList {
	var errs field.ErrorList
	endpoints := at.Child("endpoints")
	if o.Endpoints != nil && len(o.Endpoints) == 0 {
		errs = append(errs, field.Required(endpoints, "must have an endpoint; leave the field out for those of ETCD_ENDPOINTS"))
	}
	for i, endpoint := range o.Endpoints {
		switch {
		case endpoint == "": // decoding found fault with it
		case strings.Contains(endpoint, "@"):
			errs = append(errs, field.Invalid(endpoints.Index(i), endpoint,
				"must not have a user or a password; there are username and passwordFile"))
		case !isEndpoint(endpoint):
			errs = append(errs, field.Invalid(endpoints.Index(i), endpoint,
				"must be http://host:port or https://host:port, and nothing else"))
		}
	}
	for _, pair := range []struct{ name, value, needs, other string }{
		{"passwordFile", o.PasswordFile, "username", o.Username},
		{"certFile", o.CertFile, "keyFile", o.KeyFile},
		{"keyFile", o.KeyFile, "certFile", o.CertFile},
	} {
		needed := at.Child(pair.needs)
		if pair.value != "" && pair.other == "" && !faulty(needed) {
			errs = append(errs, field.Required(needed, "must be set where "+pair.name+" is"))
		}
	}
	return errs
}

// endpointForm is the form of an endpoint. The schema has it too.
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
