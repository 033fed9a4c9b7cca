package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// A server is the API server's process.
type server struct {
	cluster *cluster.Cluster
	pid     int
}

// A serverCost is what the API server used meanwhile.
type serverCost struct {
	cpu          time.Duration // user and system
	before, peak int           // resident memory in KiB
}

// findServer finds the API server's process.
func findServer(c *cluster.Cluster) (server, error) {
	text, err := os.ReadFile(filepath.Join(c.Dir, "kube-apiserver.pid"))
	if err != nil {
		return server{}, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return server{c, pid}, err
}

// watch measures the API server until the returned function is called.
func (s server) watch(ctx context.Context) (stop func() (serverCost, map[string]int, error), err error) {
	requests, err := s.requests(ctx)
	if err != nil {
		return nil, err
	}
	// 5 resets the high-water mark of the memory to its current value (proc(5)).
	if err := os.WriteFile(s.file("clear_refs"), []byte("5"), 0); err != nil {
		return nil, err
	}
	before, beforeErr := memory(s.pid, "VmRSS")
	cpu, cpuErr := s.cpu()
	if err := errors.Join(beforeErr, cpuErr); err != nil {
		return nil, err
	}
	return func() (serverCost, map[string]int, error) {
		c := serverCost{before: before}
		var peakErr error
		c.peak, peakErr = memory(s.pid, "VmHWM")
		now, cpuErr := s.cpu()
		c.cpu = now - cpu
		after, err := s.requests(ctx)
		return c, difference(after, requests), errors.Join(err, peakErr, cpuErr)
	}, nil
}

func (s server) file(name string) string { return fmt.Sprintf("/proc/%d/%s", s.pid, name) }

// tick is the unit of CPU times in /proc.
const tick = 10 * time.Millisecond

// cpu reads the CPU time of the process so far.
func (s server) cpu() (time.Duration, error) {
	data, err := os.ReadFile(s.file("stat"))
	if err != nil {
		return 0, err
	}
	// The name of the process is in parentheses, and may contain blanks. User and system time are
	// the 12th and 13th fields after it.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("%s has %d fields", s.file("stat"), len(fields))
	}
	user, userErr := strconv.Atoi(fields[11])
	system, systemErr := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick, errors.Join(userErr, systemErr)
}

// requests reads how many requests the API server has answered, by verb and resource.
func (s server) requests(ctx context.Context) (map[string]int, error) {
	data, err := s.cluster.Kube.Discovery().RESTClient().Get().AbsPath("/metrics").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the API server: %w", err)
	}
	return countRequests(data)
}

var (
	requestTotal = regexp.MustCompile(`^apiserver_request_total\{(.*)\} (\S+)$`)
	label        = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// countRequests reads the number of requests from metrics. It omits those without a resource, and
// watches.
func countRequests(metrics []byte) (map[string]int, error) {
	counts := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(metrics))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		match := requestTotal.FindStringSubmatch(lines.Text())
		if match == nil {
			continue
		}
		labels := map[string]string{}
		for _, l := range label.FindAllStringSubmatch(match[1], -1) {
			labels[l[1]] = l[2]
		}
		if labels["resource"] == "" || labels["verb"] == "WATCH" {
			continue
		}
		n, err := strconv.ParseFloat(match[2], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		counts[strings.ToLower(labels["verb"])+" "+labels["resource"]] += int(n)
	}
	return counts, lines.Err()
}

// difference returns what was counted since an earlier count.
func difference(after, before map[string]int) map[string]int {
	counts := map[string]int{}
	for request, n := range after {
		if n -= before[request]; n > 0 {
			counts[request] = n
		}
	}
	return counts
}
