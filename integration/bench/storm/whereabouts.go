package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

const iface = "net1"

// retryPeriod is as short as makes sense for the plugin.
const retryPeriod = 200 * time.Millisecond

// A whereabouts is the plugin with two networks. The range of one is the lower half of the other's,
// so that pods of either want the lowest address that is free in both.
type whereabouts struct {
	cluster  *cluster.Cluster
	networks [2]plugin.Network

	mu        sync.Mutex
	unmakings []unmaking // by the DELs so far
}

// newWhereabouts returns the plugin.
func newWhereabouts(c *cluster.Cluster) *whereabouts {
	network := func(name string, bits int) plugin.Network {
		return plugin.Network{Name: name, Range: fmt.Sprintf("10.60.0.0/%d", bits), RetryPeriod: retryPeriod}
	}
	return &whereabouts{cluster: c, networks: [2]plugin.Network{network("wide", bits), network("narrow", bits+1)}}
}

// place implements ipam: a pod that comes back finds its old network.
func (w *whereabouts) place(_ *rand.Rand, worker int) int { return worker % len(w.networks) }

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
	return []cluster.PodOption{
		cluster.Phase("Running"),
		cluster.Networks(cluster.Attached(namespace+"/"+w.networks[s.place].Name, iface, s.ip.String())),
	}
}
