package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/bench/program"
	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

const (
	namespace = "bench"
	gone      = "gone-" // begins the names of the pods whose addresses have leaked
)

// network is what the ADDs ask for addresses of.
var network = plugin.Network{Range: "10.1.0.0/16"}

// A measure runs ADDs and ip-reaper in a cluster.
type measure struct {
	*cluster.Cluster
	plugin *plugin.Plugin
	long   time.Duration
	pods   int // so many have been created
}

// A rate is what became of some ADDs, and what is left of the leak.
type rate struct {
	done, failed          int
	took                  time.Duration
	entries, reservations int
}

func (r rate) aMinute() float64 { return float64(r.done) / r.took.Minutes() }

func newMeasure(ctx context.Context, c *cluster.Cluster, long time.Duration) (*measure, error) {
	p, err := plugin.New(c.Dir, c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	return &measure{Cluster: c, plugin: p, long: long}, c.CreateNamespace(ctx, namespace)
}

// leak writes entries and reservations of pods that do not exist, as the plugin does.
func (m *measure) leak(ctx context.Context, n int) error {
	client := m.Whereabouts.WhereaboutsV1alpha1()
	pool := &v1alpha1.IPPool{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(network.Range, "/", "-")},
		Spec:       v1alpha1.IPPoolSpec{Range: network.Range, Allocations: map[string]v1alpha1.IPAllocation{}},
	}
	for i := 1; i <= n; i++ {
		podRef := fmt.Sprintf("%s/%s%d", namespace, gone, i)
		pool.Spec.Allocations[fmt.Sprint(i)] = v1alpha1.IPAllocation{ContainerID: fmt.Sprintf("leaked-%d", i), PodRef: podRef, IfName: "net1"}
		_, err := client.OverlappingRangeIPReservations(cluster.PoolNamespace).Create(ctx, &v1alpha1.OverlappingRangeIPReservation{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("10.1.%d.%d", i>>8, i&0xff)},
			Spec:       v1alpha1.OverlappingRangeIPReservationSpec{PodRef: podRef, IfName: "net1"},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	_, err := client.IPPools(cluster.PoolNamespace).Create(ctx, pool, metav1.CreateOptions{})
	return err
}

// adds runs one ADD after the other, each for a pod that exists. Only the ADDs count
// as time.
func (m *measure) adds(ctx context.Context) (rate, error) {
	r, err := m.left(ctx)
	for err == nil && r.took < m.long {
		m.pods++
		pod := plugin.Pod{Namespace: namespace, Name: fmt.Sprintf("pod-%d", m.pods)}
		if _, err := m.CreatePod(ctx, namespace, pod.Name); err != nil {
			return r, err
		}
		began := time.Now()
		_, err := m.plugin.Add(ctx, network, pod, fmt.Sprintf("sandbox-%d", m.pods), "net1")
		r.took += time.Since(began)
		refusal := new(plugin.Error)
		switch {
		case err == nil:
			r.done++
		case errors.As(err, &refusal):
			r.failed++
		default:
			return r, err
		}
	}
	return r, err
}

// left counts what is left of the leak.
func (m *measure) left(ctx context.Context) (r rate, err error) {
	client := m.Whereabouts.WhereaboutsV1alpha1()
	leaked := func(podRef string) bool { return strings.HasPrefix(podRef, namespace+"/"+gone) }
	pools, err := client.IPPools("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return r, err
	}
	for _, pool := range pools.Items {
		for _, entry := range pool.Spec.Allocations {
			if leaked(entry.PodRef) {
				r.entries++
			}
		}
	}
	reservations, err := client.OverlappingRangeIPReservations("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return r, err
	}
	for _, reservation := range reservations.Items {
		if leaked(reservation.Spec.PodRef) {
			r.reservations++
		}
	}
	return r, nil
}

// reap runs the binary once without a grace period.
func (m *measure) reap(ctx context.Context, minAge time.Duration) error {
	binary, err := assets.Path("ip-reaper")
	if err != nil {
		return err
	}
	policy := strings.Replace(program.Policy, "minAge: 0s", "minAge: "+minAge.String(), 1)
	file := filepath.Join(m.Dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, binary, "run", "--policy", file, "--kubeconfig", m.Kubeconfig,
		"--context", cluster.ContextName, "--state-namespace", cluster.PoolNamespace)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run ip-reaper: %w\n%s", err, stderr.Bytes())
	}
	return nil
}
