package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/bench/program"
	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

// grace is that of kube-controllers; without one they release nothing.
const grace = time.Second

// A blockMeasure has the programs release the leaks of a stock.
type blockMeasure struct {
	stock      *blockStock
	proxy      *proxy.Proxy
	through    *calico.Datastore // the programs of which speak through the proxy
	kubeconfig string            // that leads through the proxy
}

// A blockCost is what a release took.
type blockCost struct {
	name     string
	wall     time.Duration
	requests map[string]int // to the API server
	etcd     map[string]int // operations of Calico's etcd
	released int            // addresses
	handles  int            // that are left without an address
}

// errSlow says that a program was stopped before it was done.
var errSlow = errors.New("it took too long")

// of measures one release. What it leaves is in the cost.
func (m blockMeasure) of(ctx context.Context, release func(context.Context) error) (blockCost, error) {
	before, err := m.operations(ctx)
	if err != nil {
		return blockCost{}, err
	}
	m.proxy.Reset()
	m.stock.ranges = 0
	began := time.Now()
	err = release(ctx)
	c := blockCost{wall: time.Since(began), requests: m.proxy.Counts()}
	if err != nil && !errors.Is(err, errSlow) {
		return c, err
	}
	after, err := m.operations(ctx)
	if err != nil {
		return c, err
	}
	before["Range"] += m.stock.ranges // ours
	c.etcd = map[string]int{}
	for operation, n := range after {
		if n -= before[operation]; n > 0 {
			c.etcd[operation] = n
		}
	}
	addresses, handles, err := m.stock.left(ctx)
	c.released, c.handles = m.stock.size.leaked-addresses, handles-addresses
	return c, err
}

// reaper runs the binary, which has to exit with 0.
func (m blockMeasure) reaper(ctx context.Context) error {
	binary, err := assets.Path("ip-reaper")
	if err != nil {
		return err
	}
	file := filepath.Join(m.stock.Cluster.Dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(program.Policy), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, binary, "run", "--policy="+file, "--kubeconfig="+m.kubeconfig,
		"--context="+cluster.ContextName, "--state-namespace="+cluster.PoolNamespace)
	if m.stock.Etcd != nil {
		cmd.Env = append(os.Environ(), "ETCD_ENDPOINTS="+m.stock.Etcd.Endpoint)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	return nil
}

// calicoctl locks, checks, releases from the report and unlocks.
func (m blockMeasure) calicoctl(ctx context.Context) error {
	_, err := m.through.ReleaseLocked(ctx)
	return err
}

// controllers runs kube-controllers until the addresses are gone, or so long.
func (m blockMeasure) controllers(ctx context.Context, wait time.Duration) (err error) {
	c, err := m.through.StartControllers(ctx, grace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	timeout := time.After(wait)
	for {
		if addresses, _, err := m.stock.left(ctx); err != nil || addresses == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout:
			return errSlow
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// handled is a line of etcd's metrics about a kind of request.
var handled = regexp.MustCompile(`^grpc_server_handled_total\{.*grpc_method="(\w+)".*\} (\S+)$`)

// operations are the requests that etcd has answered by now, by method.
func (m blockMeasure) operations(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	if m.stock.Etcd == nil {
		return counts, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.stock.Etcd.Endpoint+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); ; {
		if !lines.Scan() {
			return counts, lines.Err()
		}
		if match := handled.FindStringSubmatch(lines.Text()); match != nil {
			n, err := strconv.ParseFloat(match[2], 64)
			if err != nil {
				return nil, err
			}
			counts[match[1]] += int(n)
		}
	}
}
