package calico

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// Plugin describes the backend over either datastore.
func Plugin() plugin.Plugin {
	return plugin.Plugin{
		Name: Name,
		Summary: "Calico IPAM blocks and handles, in the Kubernetes datastore " +
			"(`crd.projectcalico.org` or `projectcalico.org`) or in etcdv3",
		Settings: func() any { return new(Settings) },
		Access:   access,
		Open:     plugin.With(open),
		Reads:    reads,
	}
}

// open prepares the backend over the datastore that the settings and the environment name.
func open(env plugin.Env, s *Settings) (ipam.Backend, error) {
	if env.Files != nil {
		return newFiles(env.Files, env.Concurrency), nil
	}
	datastore := DatastoreKubernetes
	if !env.Off {
		var err error
		if datastore, err = datastoreOf(env, s.Datastore); err != nil {
			return nil, err
		}
	}
	if datastore != DatastoreEtcd {
		return NewKubernetes(env.Client, env.Concurrency), nil
	}
	config, err := EtcdConfig(env.Getenv)
	if err != nil {
		return nil, ipam.BadInput(fmt.Errorf("calico: %w", err), "")
	}
	return NewEtcd(config, env.Concurrency), nil
}

// datastoreOf returns the datastore of the settings. If they name none, Calico's own variables do in
// a pod: DATASTORE_TYPE, or else ETCD_ENDPOINTS. Outside a cluster, a shell may still have those of
// another one, so they are an error there.
func datastoreOf(env plugin.Env, named Datastore) (Datastore, error) {
	if named != DatastoreAuto && named != "" {
		return named, nil
	}
	var set []string
	for _, variable := range []string{envDatastore, envEndpoints} {
		if env.Getenv(variable) != "" {
			set = append(set, variable)
		}
	}
	switch variables := strings.Join(set, ", "); {
	case len(set) == 0:
		return DatastoreKubernetes, nil
	case !env.InPod:
		return "", ipam.BadInput(
			fmt.Errorf("calico: the environment has %s, but outside a cluster only backends.calico.datastore of the policy says where Calico keeps its addresses", variables),
			"set it to kubernetes or etcdv3, or unset "+variables)
	}
	switch datastore := Datastore(env.Getenv(envDatastore)); datastore {
	case "":
		return DatastoreEtcd, nil
	case DatastoreKubernetes, DatastoreEtcd:
		return datastore, nil
	default:
		return "", ipam.BadInput(fmt.Errorf("%s: unknown datastore %q", envDatastore, datastore), "set backends.calico.datastore, or kubernetes or etcdv3")
	}
}

// access covers both API groups that the data can be in. If the settings name
// etcd, nothing in the API server is needed.
func access(settings any) plugin.Access {
	if s, ok := settings.(*Settings); ok && s.Datastore == DatastoreEtcd {
		return nil
	}
	rule := func(resource string, verbs ...string) rbacv1.PolicyRule {
		r := plugin.Rule(groupV1, resource, verbs...)
		r.APIGroups = append(r.APIGroups, groupV3)
		return r
	}
	definitions := plugin.Rule("apiextensions.k8s.io", "customresourcedefinitions", "get")
	definitions.ResourceNames = []string{
		"ipamblocks." + groupV1, "ipamblocks." + groupV3, "ipreservations." + groupV1, "ipreservations." + groupV3,
		"ippools." + groupV1, "ippools." + groupV3,
		"ipamconfigs." + groupV1, "ipamconfigurations." + groupV3, "blockaffinities." + groupV1, "blockaffinities." + groupV3,
		"datastoremigrations." + migrationGroup,
	}
	information := rule("clusterinformations", "get")
	information.ResourceNames = []string{"default"}
	return plugin.Access{
		plugin.Plan: {
			definitions, information,
			plugin.Rule(migrationGroup, "datastoremigrations", "list"),
			rule("ipreservations", "list"),
			rule("ippools", "list"),
			rule("ipamconfigs", "list"),
			rule("ipamconfigurations", "list"),
			rule("blockaffinities", "list"),
			rule("ipamblocks", "list"),
			rule("ipamhandles", "list"),
		},
		plugin.Release: {
			rule("ipamblocks", "get", "update"),
			rule("ipamhandles", "get", "update", "delete"),
		},
		plugin.Restore: {
			rule("ipamblocks", "get", "update"),
			rule("ipamhandles", "get", "create", "update"),
		},
	}
}

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
