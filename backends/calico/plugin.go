package calico

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"

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
		Open: func(_ context.Context, env plugin.Env, settings any) (ipam.Backend, error) {
			s, ok := settings.(*Settings)
			if !ok {
				return nil, fmt.Errorf("calico: the settings are %T", settings)
			}
			return open(env, s)
		},
		Offline: func(documents []ipam.Document, _ func(string) any) (ipam.Backend, []ipam.Document) {
			return Offline(documents)
		},
	}
}

// open prepares the backend over the datastore of the settings. If they name
// none, DATASTORE_TYPE may; otherwise it is etcd if ETCD_ENDPOINTS is set, and
// the Kubernetes API if not.
func open(env plugin.Env, s *Settings) (ipam.Backend, error) {
	datastore := s.Datastore
	if datastore == DatastoreAuto || datastore == "" {
		datastore = Datastore(env.Getenv("DATASTORE_TYPE"))
	}
	switch datastore {
	case "", DatastoreKubernetes, DatastoreEtcd:
	default:
		return nil, ipam.BadInput(fmt.Errorf("DATASTORE_TYPE: unknown datastore %q", datastore), "set backends.calico.datastore, or kubernetes or etcdv3")
	}
	if datastore == "" && env.Getenv(envEndpoints) != "" {
		datastore = DatastoreEtcd
	}
	if datastore != DatastoreEtcd || env.Off {
		b, err := NewKubernetes(env.Config)
		if err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
		return b.withRoom(env.Concurrency), nil
	}
	config, err := EtcdConfig(env.Getenv)
	if err != nil {
		return nil, ipam.BadInput(fmt.Errorf("calico: %w", err), "")
	}
	return NewEtcd(config).withRoom(env.Concurrency), nil
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
