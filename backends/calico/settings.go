package calico

import (
	_ "embed"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Settings are backends.calico of a policy.
//
// They do not say how etcd is reached: see EtcdConfig. A policy is kept in a ConfigMap. If it named
// an endpoint or a file, an account that may only write the ConfigMap could have the pod's files
// sent to its own server.
type Settings struct {
	// Datastore is empty if the policy omits it, which means DatastoreAuto.
	Datastore Datastore `json:"datastore,omitzero"`
}

// Datastore says where Calico keeps its addresses.
type Datastore string

// The datastores of Calico.
const (
	// DatastoreAuto is DatastoreKubernetes, or in a pod what Calico's variables say.
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

// Validate implements policy.Validator.
func (s *Settings) Validate(at *field.Path) field.ErrorList {
	datastores := []Datastore{DatastoreAuto, DatastoreKubernetes, DatastoreEtcd}
	if s.Datastore != "" && !slices.Contains(datastores, s.Datastore) {
		return field.ErrorList{field.NotSupported(at.Child("datastore"), string(s.Datastore), datastores)}
	}
	return nil
}
