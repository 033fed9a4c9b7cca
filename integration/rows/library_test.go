package rows_test

import (
	"encoding/json"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// runAt runs what the binary runs, with the clients that it has, but at a time
// of the test's choice. It returns the lines of the report. The terms follow
// the header of a policy that releases.
func (s *scene) runAt(now time.Time, terms string) []string {
	s.Helper()
	p, err := policy.Load([]byte(header+terms), plugin.Known(backends.All()))
	s.must(err)
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	s.must(err)
	config.QPS = -1
	stores, err := plugin.Open(s.Context(), backends.All(), config, func(string) string { return "" }, p)
	s.must(err)
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := corev1.NewForConfig(protobuf)
	s.must(err)
	apps, err := appsv1.NewForConfig(protobuf)
	s.must(err)
	report, err := reaper.Run(s.Context(), reaper.Options{
		ID:          "run-" + now.Format("150405.000"),
		Version:     "test",
		Address:     config.Host,
		Policy:      p,
		Backends:    stores,
		Cluster:     kube.NewCluster(core, apps),
		Ledgers:     kube.NewLedgers(core, cluster.PoolNamespace),
		Journals:    kube.NewJournals(core, cluster.PoolNamespace, 10),
		Now:         func() time.Time { return now },
		Logger:      slog.New(slog.DiscardHandler),
		Concurrency: 32,
	})
	s.must(err)
	data, err := json.Marshal(report)
	s.must(err)
	return s.lines(data)
}
