// Package calico runs Calico's own programs on a real datastore: its IPAM plugin as a container
// runtime would, calicoctl as an operator would, and kube-controllers, which collects garbage. It
// also reads and writes what they store directly, to build what they would not.
//
// The programs are from Calico v3.28. None of Calico's Go code is used here: the programs are the
// judges of ip-reaper's.
package calico

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// What ClusterInformation says about the cluster.
const (
	ClusterGUID   = "5f1c2b8e0d9a4c7f8b3e6a1d2c4f5e60"
	CalicoVersion = "v3.28.4"
)

// A Datastore is where Calico keeps its data: in the cluster of the nodes and the pods, or in its
// own etcd. Its methods may be called concurrently.
type Datastore struct {
	Cluster *cluster.Cluster
	Etcd    *Etcd // nil if the data is in the cluster

	store
	spec       map[string]string // of calicoctl's configuration, without the kubeconfig
	dir        string
	lock       string // prefix of the file with which the plugins of one node wait for each other
	env        []string
	ipam       string // the plugin
	calicoctl  string
	configFile string // of calicoctl
	files      atomic.Uint32
}

// OnKubernetes returns the datastore in the cluster, which must have been started with the CRDs,
// and writes what every Calico cluster has.
func OnKubernetes(ctx context.Context, c *cluster.Cluster) (*Datastore, error) {
	d := &Datastore{Cluster: c, store: kubernetesStore{c}}
	return d, d.open(ctx, "kubernetes", map[string]string{}, nil)
}

// OnEtcd returns the datastore in the etcd, for the nodes and pods of the cluster, and writes what
// every Calico cluster has.
func OnEtcd(ctx context.Context, c *cluster.Cluster, e *Etcd) (*Datastore, error) {
	d := &Datastore{Cluster: c, Etcd: e, store: etcdStore{e.Client}}
	spec := map[string]string{
		"etcdEndpoints": e.Endpoint, "etcdUsername": e.User, "etcdPassword": e.Password,
		"etcdCACertFile": e.CAFile, "etcdCertFile": e.CertFile, "etcdKeyFile": e.KeyFile,
	}
	return d, d.open(ctx, "etcdv3", spec, []string{
		"ETCD_ENDPOINTS=" + e.Endpoint, "ETCD_USERNAME=" + e.User, "ETCD_PASSWORD=" + e.Password,
		"ETCD_CA_CERT_FILE=" + e.CAFile, "ETCD_CERT_FILE=" + e.CertFile, "ETCD_KEY_FILE=" + e.KeyFile,
	})
}

// open finds the programs, configures them and prepares the store.
func (d *Datastore) open(ctx context.Context, kind string, spec map[string]string, env []string) error {
	var err error
	if d.ipam, err = assets.Path("calico-ipam"); err != nil {
		return err
	}
	if d.calicoctl, err = assets.Path("calicoctl"); err != nil {
		return err
	}
	spec["datastoreType"] = kind
	d.spec, d.env = spec, append([]string{"DATASTORE_TYPE=" + kind}, env...)
	if err := d.configure(d.Cluster.Kubeconfig); err != nil {
		return err
	}
	d.lock = filepath.Join(d.dir, "ipam.lock")
	return d.prepare(ctx)
}

// Through returns the same datastore, with programs that use another kubeconfig, such as one that
// leads through a proxy.
func (d *Datastore) Through(kubeconfig string) (*Datastore, error) {
	through := &Datastore{
		Cluster: d.Cluster, Etcd: d.Etcd, store: d.store,
		spec: d.spec, lock: d.lock, env: d.env, ipam: d.ipam, calicoctl: d.calicoctl,
	}
	return through, through.configure(kubeconfig)
}

// configure gives the programs a folder and their configuration.
func (d *Datastore) configure(kubeconfig string) error {
	var err error
	if d.dir, err = os.MkdirTemp(d.Cluster.Dir, "calico-"); err != nil {
		return err
	}
	// Calico's programs treat an empty variable like an unset one. If a variable is set twice, the
	// last one counts.
	d.env = append(slices.Clone(d.env), "KUBECONFIG="+kubeconfig)
	// calicoctl gets a file: without one it would read that of the machine it runs on, and act on
	// the cluster named there.
	spec := maps.Clone(d.spec)
	if d.Etcd == nil {
		spec["kubeconfig"] = kubeconfig
	}
	config, err := json.Marshal(map[string]any{
		"apiVersion": "projectcalico.org/v3", "kind": "CalicoAPIConfig",
		"metadata": map[string]any{}, "spec": spec,
	})
	if err != nil {
		return err
	}
	d.configFile = filepath.Join(d.dir, "calicoctl.json")
	return os.WriteFile(d.configFile, config, 0o600)
}

// prepare writes the ClusterInformation, without which the programs do nothing.
// The type is what kube-controllers would make of it.
func (d *Datastore) prepare(ctx context.Context) error { return d.PutGUID(ctx, ClusterGUID) }

// PutGUID writes the ClusterInformation of another cluster.
func (d *Datastore) PutGUID(ctx context.Context, guid string) error {
	kind := "k8s,kdd"
	if d.Etcd != nil {
		kind = "k8s"
	}
	return d.putResource(ctx, "clusterinformations", "ClusterInformation", "default", map[string]any{
		"calicoVersion": CalicoVersion, "clusterGUID": guid, "clusterType": kind, "datastoreReady": true,
	})
}

// newFile returns a path in the datastore's folder that was not returned before.
func (d *Datastore) newFile(name string) string {
	return filepath.Join(d.dir, fmt.Sprintf("%d-%s", d.files.Add(1), name))
}
