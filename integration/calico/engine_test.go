package calico_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/backends"
	backend "github.com/ip-reaper/ip-reaper/backends/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// An engine is what the binary runs, with the clients that it has, run by the
// test itself.
type engine struct {
	after time.Duration     // the run is that much later than now
	etcd  []grpc.DialOption // of the client of etcd
}

// run runs the engine with the policy. The error is that of reaper.Run, or of
// what it needs.
func (e engine) run(s *fixture, terms string) (*reap.Report, error) {
	p, err := policy.Load([]byte(terms), backends.Names())
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	store, err := e.backend(s, config)
	if err != nil {
		return nil, err
	}
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := corev1.NewForConfig(protobuf)
	if err != nil {
		return nil, err
	}
	apps, err := appsv1.NewForConfig(protobuf)
	if err != nil {
		return nil, err
	}
	told, runErr := reaper.Run(s.Context(), reaper.Options{
		ID:          rand.Text(),
		Version:     "test",
		Address:     config.Host,
		Policy:      p,
		Backends:    []reaper.Backend{store},
		Cluster:     kube.NewCluster(core, apps),
		Ledgers:     kube.NewLedgers(core, cluster.PoolNamespace),
		Journals:    kube.NewJournals(core, cluster.PoolNamespace, 10),
		Now:         func() time.Time { return time.Now().Add(e.after) },
		Logger:      slog.New(slog.DiscardHandler),
		Concurrency: 32,
	})
	data, err := json.Marshal(told)
	if err != nil {
		return nil, err
	}
	report := new(reap.Report)
	if err := json.Unmarshal(data, report); err != nil {
		return nil, err
	}
	return report, runErr
}

// backend is the one that the binary makes of the scene's environment.
func (e engine) backend(s *fixture, config *rest.Config) (*backend.Backend, error) {
	if s.Etcd == nil {
		return backend.NewKubernetes(config)
	}
	etcd, err := backend.EtcdOptions{}.Config(func(name string) string {
		for _, variable := range s.env {
			if value, is := strings.CutPrefix(variable, name+"="); is {
				return value
			}
		}
		return ""
	})
	etcd.DialOptions = e.etcd
	return backend.NewEtcd(etcd), err
}

// A transaction is an etcd transaction that a hook stands before.
type transaction struct {
	ctx     context.Context
	forward func() error // has it carried out, and returns what the client is told
}

// onTransaction has the hook called for the first transaction, in its place.
func onTransaction(hook func(transaction) error) grpc.DialOption {
	var once sync.Once
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any,
		c *grpc.ClientConn, forward grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		t := transaction{ctx, func() error { return forward(ctx, method, request, reply, c, options...) }}
		hooked := false
		var err error
		if method == "/etcdserverpb.KV/Txn" {
			once.Do(func() {
				hooked = true
				err = hook(t)
			})
		}
		if hooked {
			return err
		}
		return t.forward()
	})
}
