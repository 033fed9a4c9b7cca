// Command annotations measures the peak memory of a dry run of ip-reaper while pods have
// large annotations: before there is such a pod, and with all of them.
//
//	go run ./bench/annotations [-pods 200] [-kib 246] [-binary FILE]
//
// Each pod has a network-status with as many different addresses as there is room for.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/bench/program"
	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/parallel"
)

const namespace = "bench"

func main() { program.Main("annotations", run) }

// run is the program.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("annotations", flag.ContinueOnError)
	pods := flags.Int("pods", 200, "pods with a large annotation")
	kib := flags.Int("kib", 246, "size of each annotation; an API server accepts 256")
	binary := flags.String("binary", "", "the ip-reaper to measure; by default the one in integration/bin")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *binary == "" {
		if *binary, err = assets.Path("ip-reaper"); err != nil {
			return err
		}
	}
	c, err := cluster.Start(ctx, cluster.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	before, _, err := measure(ctx, *binary, c.Kubeconfig)
	if err != nil {
		return err
	}
	if err := c.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	err = parallel.Each(4, make([]struct{}, *pods), func(n int, _ struct{}) error {
		status := cluster.Annotation("k8s.v1.cni.cncf.io/network-status", networkStatus(n, *kib<<10))
		_, err := c.CreatePod(ctx, namespace, fmt.Sprintf("pod-%d", n), status)
		return err
	})
	if err != nil {
		return err
	}
	peak, took, err := measure(ctx, *binary, c.Kubeconfig)
	if err != nil {
		return err
	}
	text := *pods * *kib
	_, err = fmt.Fprintf(out, "%d pods with %d KiB each, %d MiB together: %d MiB peak memory in %v, %d MiB without them, %.2f bytes for a byte\n",
		*pods, *kib, text>>10, peak>>10, took.Round(time.Millisecond), before>>10, float64(peak-before)/float64(text))
	return err
}

// networkStatus returns a network-status of at most size bytes, with addresses that no
// other pod shows.
func networkStatus(pod, size int) string {
	const begin, end = `[{"interface":"net1","ips":[`, `]}]`
	var ips []string
	for left := size - len(begin+end); ; {
		n := len(ips)
		ip := fmt.Sprintf(`"%x::%x"`, 0x2000+pod, n)
		if left -= len(ip) + 1; left < 0 {
			return begin + strings.Join(ips, ",") + end
		}
		ips = append(ips, ip)
	}
}

// measure makes a dry run and returns its peak memory in KiB, and how long it took.
func measure(ctx context.Context, binary, kubeconfig string) (int, time.Duration, error) {
	cmd := exec.CommandContext(ctx, binary, "run", "--kubeconfig", kubeconfig, "--context", cluster.ContextName, "--state-namespace", cluster.PoolNamespace)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	peak := program.Peak(cmd.Process.Pid)
	err := cmd.Wait()
	most := peak()
	if err != nil {
		return most, 0, fmt.Errorf("run ip-reaper: %w\n%s", err, stderr.Bytes())
	}
	return most, time.Since(began), nil
}
