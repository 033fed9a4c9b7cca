package suite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A guard looks all the time whether every pod still has its addresses: that a pod
// shows one which no store has for it, or that another pod shows too, is what must
// never be (promise 1).
type guard struct {
	*cluster
	stop func()

	mu       sync.Mutex
	looks    int
	excused  map[string]bool // nodes whose pods are being set up anew
	rows     map[string]int  // in how many looks in a row, by finding
	findings []string
}

// patience is in how many looks in a row a finding must be made. Between a look at the
// pods and one at the stores a pod may go.
const patience = 4

// watch begins to look; the guard reports when its test ends.
func (c *cluster) watch() *guard {
	ctx, cancel := context.WithCancel(c.Context())
	g := &guard{cluster: c, excused: map[string]bool{}, rows: map[string]int{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			g.look(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second):
			}
		}
	}()
	g.stop = func() {
		cancel()
		<-done
		for _, finding := range g.findings {
			c.Error(finding)
		}
		c.Logf("the guard looked %d times", g.looks)
	}
	return g
}

// excuse has the guard not look at the pods of a node, whose sandboxes are made
// anew after it was down; unless it is told to again.
func (g *guard) excuse(node string, excused bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.excused[node] = excused
}

// look compares once. What cannot be asked is asked again.
func (g *guard) look(ctx context.Context) {
	pods, err := g.pods(ctx, "")
	if err != nil {
		return
	}
	held, err := g.allocations(ctx)
	if err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.looks++
	rows := make(map[string]int)
	for _, finding := range findings(pods, held, g.excused) {
		rows[finding] = g.rows[finding] + 1
		if rows[finding] == patience {
			g.findings = append(g.findings, finding)
		}
	}
	g.rows = rows
}

// findings are the addresses that pods show and do not have, or not alone.
func findings(pods []corev1.Pod, held []allocation, excused map[string]bool) []string {
	owners := make(map[netip.Addr][]string)
	for _, a := range held {
		owners[a.ip] = append(owners[a.ip], a.pod)
	}
	shownBy := make(map[netip.Addr]string)
	var found []string
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || pod.Spec.HostNetwork || excused[pod.Spec.NodeName] {
			continue
		}
		name := pod.Namespace + "/" + pod.Name
		for _, ip := range shown(pod) {
			if !slices.Contains(owners[ip], name) {
				found = append(found, fmt.Sprintf("pod %s (%s) shows %s, which no store has for it", name, pod.UID, ip))
			}
			if other, taken := shownBy[ip]; taken {
				found = append(found, fmt.Sprintf("pods %s and %s both show %s", other, name, ip))
			}
			shownBy[ip] = name
		}
	}
	return found
}

// shown are the addresses that a pod shows, each once.
func shown(pod corev1.Pod) []netip.Addr {
	var texts []string
	for _, ip := range pod.Status.PodIPs {
		texts = append(texts, ip.IP)
	}
	var networks []struct {
		IPs []string `json:"ips"`
	}
	// A pod without networks has no annotation; Multus writes no broken one.
	if json.Unmarshal([]byte(pod.Annotations["k8s.v1.cni.cncf.io/network-status"]), &networks) == nil {
		for _, n := range networks {
			texts = append(texts, n.IPs...)
		}
	}
	var all []netip.Addr
	for _, text := range texts {
		if ip, err := netip.ParseAddr(text); err == nil && !slices.Contains(all, ip) {
			all = append(all, ip)
		}
	}
	return all
}
