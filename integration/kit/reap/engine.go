package reap

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/backends/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	backendplugin "github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// An Engine runs what the binary runs, with the same clients, in the process of the test. It takes no lock.
type Engine struct {
	Kubeconfig string
	Namespace  string            // of its ledger and journals; cluster.PoolNamespace if empty
	Env        []string          // as for the binary, KEY=value: with ETCD_ENDPOINTS, blocks are in etcd
	Dial       []grpc.DialOption // of the etcd client
	Now        func() time.Time  // the clock of the run; time.Now if nil
	Only       []string          // names of the backends; all if empty
	ID         string            // of the run; a random one if empty
}

// After returns a clock that is ahead.
func After(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(d) } }

// Run runs with the policy. The error is from the run, or from its setup; then there is no report.
func (e Engine) Run(ctx context.Context, terms string) (*Report, error) {
	options, err := e.options(terms)
	if err != nil {
		return nil, err
	}
	told, runErr := reaper.Run(ctx, options)
	data, err := json.Marshal(told)
	if err != nil {
		return nil, err
	}
	report := new(Report)
	if err := json.Unmarshal(data, report); err != nil {
		return nil, err
	}
	return report, runErr
}

// options returns the options of the binary's run.
func (e Engine) options(terms string) (reaper.Options, error) {
	o := reaper.Options{
		ID:     cmp.Or(e.ID, rand.Text()),
		Now:    e.Now,
		Logger: slog.New(slog.DiscardHandler),
	}
	o.Version = "test"
	if o.Now == nil {
		o.Now = time.Now
	}
	var err error
	if o.Policy, err = policy.Load([]byte(terms), backendplugin.Known(backends.All())); err != nil {
		return o, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", e.Kubeconfig)
	if err != nil {
		return o, err
	}
	config.QPS = -1
	o.Origin.Cluster = config.Host
	if o.Backends, o.Protectors, err = e.backends(config, o.Policy); err != nil {
		return o, err
	}
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := corev1.NewForConfig(protobuf)
	if err != nil {
		return o, err
	}
	apps, err := appsv1.NewForConfig(protobuf)
	if err != nil {
		return o, err
	}
	raw, err := kube.RawClient(config)
	if err != nil {
		return o, err
	}
	o.Cluster = state.NewCluster(core, apps, raw)
	namespace := cmp.Or(e.Namespace, cluster.PoolNamespace)
	o.Ledgers = state.NewLedgers(core, namespace)
	o.Journals = state.NewJournals(core, namespace, journal.Retention{Runs: 10})
	return o, nil
}

// backends returns those of Only, with the one from Blocks for Calico, and all protectors.
func (e Engine) backends(config *rest.Config, p policy.Policy) (some []ipam.Backend, protectors []ipam.Protector, err error) {
	raw, err := kube.RawClient(config)
	if err != nil {
		return nil, nil, err
	}
	all, protectors, err := backendplugin.Open(context.Background(), backends.All(), backendplugin.Env{Config: config, Client: raw, Getenv: e.getenv, InPod: true, Concurrency: 32}, p)
	if err != nil {
		return nil, nil, err
	}
	blocks, err := e.Blocks(config)
	if err != nil {
		return nil, nil, err
	}
	for _, b := range all {
		switch {
		case len(e.Only) > 0 && !slices.Contains(e.Only, b.Name()):
		case b.Name() == calico.Name:
			some = append(some, blocks)
		default:
			some = append(some, b)
		}
	}
	return some, protectors, nil
}

// Blocks returns Calico's backend.
func (e Engine) Blocks(config *rest.Config) (*calico.Backend, error) {
	if e.getenv("ETCD_ENDPOINTS") == "" {
		raw, err := kube.RawClient(config)
		return calico.NewKubernetes(raw, 8), err
	}
	etcd, err := calico.EtcdConfig(e.getenv)
	etcd.DialOptions = e.Dial
	return calico.NewEtcd(etcd, 8), err
}

// getenv looks into Env.
func (e Engine) getenv(name string) string {
	for _, variable := range e.Env {
		if value, is := strings.CutPrefix(variable, name+"="); is {
			return value
		}
	}
	return ""
}
