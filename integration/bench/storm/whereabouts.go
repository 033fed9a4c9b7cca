package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

const iface = "net1"

// retryPeriod is as short as makes sense for the plugin.
const retryPeriod = 200 * time.Millisecond

// A whereabouts is the plugin in some installations with two ranges each. One is the lower half of
// the other, so that pods of either want the lowest address that is free in both.
//
// The plugins of one installation wait for each other's lease, and a waiting plugin adds nothing to
// the storm. So there is one installation per pair of workers.
type whereabouts struct {
	cluster       *cluster.Cluster
	installations []installation

	mu        sync.Mutex
	unmakings []unmaking // by the DELs so far
}

// An installation is a namespace of pools, and a lease.
type installation struct {
	namespace  string
	kubeconfig string
	networks   [2]plugin.Network
}

// newWhereabouts returns the plugin for the workers.
func newWhereabouts(c *cluster.Cluster) *whereabouts {
	w := &whereabouts{cluster: c}
	for i := range (workers + 1) / 2 {
		network := func(name string, bits int) plugin.Network {
			return plugin.Network{Name: name, Range: fmt.Sprintf("10.60.%d.0/%d", i, bits), RetryPeriod: retryPeriod}
		}
		w.installations = append(w.installations, installation{
			namespace: fmt.Sprintf("pools-%d", i),
			networks:  [2]plugin.Network{network("wide", bits), network("narrow", bits+1)},
		})
	}
	return w
}

// prepare implements ipam. The plugins make their pools themselves, in the installation's
// namespace.
func (w *whereabouts) prepare(ctx context.Context) error {
	dir, err := os.MkdirTemp(w.cluster.Dir, "whereabouts-")
	if err != nil {
		return err
	}
	for i := range w.installations {
		in := &w.installations[i]
		if err := w.cluster.CreateNamespace(ctx, in.namespace); err != nil {
			return err
		}
		config, err := clientcmd.LoadFromFile(w.cluster.Kubeconfig)
		if err != nil {
			return err
		}
		config.Contexts[cluster.ContextName].Namespace = in.namespace
		in.kubeconfig = filepath.Join(dir, in.namespace)
		if err := clientcmd.WriteToFile(*config, in.kubeconfig); err != nil {
			return err
		}
	}
	return nil
}

// place implements ipam: a pod that comes back finds its old network.
func (w *whereabouts) place(_ *rand.Rand, worker int) int { return worker }

// of returns the installation and the network of a place.
func (w *whereabouts) of(place int) (installation, plugin.Network) {
	in := w.installations[place/2]
	return in, in.networks[place%2]
}

// add implements ipam.
func (w *whereabouts) add(ctx context.Context, s *sandbox) error {
	var ips []netip.Addr
	log, err := w.logged(s, func(p *plugin.Plugin, n plugin.Network) (err error) {
		ips, err = p.Add(ctx, n, plugin.Pod{Namespace: namespace, Name: s.pod}, s.id, iface)
		return err
	})
	if err != nil {
		return err
	}
	if len(ips) != 1 {
		return &plugin.Error{Command: "ADD", Pod: plugin.Pod{Namespace: namespace, Name: s.pod},
			Msg: fmt.Sprintf("success with addresses %v, want one", ips)}
	}
	s.ip, s.unreserved = ips[0], withoutReservation(log, ips[0].String())
	return nil
}

// del implements ipam.
func (w *whereabouts) del(ctx context.Context, s *sandbox) error {
	began := time.Now()
	log, err := w.logged(s, func(p *plugin.Plugin, n plugin.Network) error {
		return p.Del(ctx, n, plugin.Pod{Namespace: namespace, Name: s.pod}, s.id, iface)
	})
	if name := deletedReservation(log); name != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.unmakings = append(w.unmakings, unmaking{name, s, began, time.Now()})
	}
	return err
}

// full implements ipam.
func (w *whereabouts) full(err error) bool {
	return strings.Contains(err.Error(), "Could not allocate IP in range")
}

// scheduled implements ipam.
func (w *whereabouts) scheduled(*sandbox) []cluster.PodOption {
	return []cluster.PodOption{cluster.Phase("Pending")}
}

// running implements ipam.
func (w *whereabouts) running(s *sandbox) []cluster.PodOption {
	_, network := w.of(s.place)
	return []cluster.PodOption{
		cluster.Phase("Running"),
		cluster.Networks(cluster.Attached(namespace+"/"+network.Name, iface, s.ip.String())),
	}
}
