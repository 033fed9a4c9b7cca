package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/bench/program"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

// A poolMeasure runs the binary.
type poolMeasure struct {
	binary, dir string
	concurrency int
}

// A poolCost is what a run took.
type poolCost struct {
	wall time.Duration
	peak int // resident memory in KiB; 0 where it could not be read
}

// run runs the binary once, which has to exit with 0.
func (m poolMeasure) run(ctx context.Context, kubeconfig string) (poolCost, error) {
	file := filepath.Join(m.dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(program.Policy), 0o600); err != nil {
		return poolCost{}, err
	}
	cmd := exec.CommandContext(ctx, m.binary, "run", "--policy", file, "--kubeconfig", kubeconfig,
		"--context", cluster.ContextName, "--state-namespace", cluster.PoolNamespace, "--concurrency", strconv.Itoa(m.concurrency))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return poolCost{}, err
	}
	peak := program.Peak(cmd.Process.Pid)
	err := cmd.Wait()
	c := poolCost{wall: time.Since(began), peak: peak()}
	if err != nil {
		return c, fmt.Errorf("run ip-reaper: %w\n%s", err, stderr.Bytes())
	}
	return c, nil
}

// tellPools prints what was measured.
func tellPools(out io.Writer, s poolSize, p *proxy.Proxy, through, direct poolCost) error {
	fmt.Fprintf(out, "%d entries in %d pools and %d reservations, %d of each stale; %d live pods\n\n",
		s.live+s.stale, s.pools, s.live+s.stale, s.stale, s.live)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	counts, all := p.Counts(), 0
	for _, request := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "%d\t %s\n", counts[request], request)
		all += counts[request]
	}
	fmt.Fprintf(w, "%d\t requests\n", all)
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%v wall time through the proxy that counts, %d MiB peak memory\n%v wall time directly, %d MiB peak memory\n",
		through.wall.Round(time.Millisecond), through.peak/1024, direct.wall.Round(time.Millisecond), direct.peak/1024)
	return err
}
