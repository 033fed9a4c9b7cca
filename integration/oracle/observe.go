package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/snapshot"
)

// home is the namespace of ledger, lock and journals.
const home = "ip-reaper"

// An observation is what can be seen of the runs in a world.
type observation struct {
	reports  []string
	stores   map[string]string
	requests [][]string     // of each run, each once: verb, resource, name
	reasons  map[string]int // and outcomes of the last report, for people
}

// A bench is the API server in which programs are observed, behind a proxy.
type bench struct {
	*cluster.Cluster
	proxy      *proxy.Proxy
	kubeconfig string // through the proxy
}

// observe makes the world anew, and runs the program in it.
func (b *bench) observe(ctx context.Context, program string, w *world) (observation, error) {
	var o observation
	if err := b.Reset(ctx); err != nil {
		return o, err
	}
	if err := b.CreateNamespace(ctx, home); err != nil {
		return o, err
	}
	policy := filepath.Join(b.Dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(w.policy), 0o600); err != nil {
		return o, err
	}
	for _, steps := range w.steps {
		for _, s := range steps {
			if err := s(ctx, b.Cluster); err != nil {
				return o, err
			}
		}
		if err := o.run(ctx, b, program, policy); err != nil {
			return o, err
		}
		time.Sleep(w.grace + time.Second)
	}
	stores, err := snapshot.Take(ctx, b.Cluster)
	o.stores = stores.Bytes()
	for path, text := range o.stores {
		o.stores[path] = born.ReplaceAllString(text, "")
	}
	return o, err
}

// run runs the program once, and notes its report and its requests.
func (o *observation) run(ctx context.Context, b *bench, program, policy string) error {
	b.proxy.Reset()
	r := &reap.Reaper{Path: program}
	result, err := r.Run(ctx, "run", "--kubeconfig="+b.kubeconfig, "--context="+cluster.ContextName,
		"--state-namespace="+home, "--policy="+policy, "--dry-run=false", "--all", "-o=json")
	if err != nil {
		return err
	}
	if result.Report == nil {
		return fmt.Errorf("exit code %d, and no report:\n%s", result.ExitCode, result.Stderr)
	}
	masked := func(text string) string { return mask(text, result.Report.Run.ID) }
	o.reports = append(o.reports, fmt.Sprintf("exit code %d\n%s", result.ExitCode, masked(result.Stdout)))
	asked := map[string]bool{}
	for _, q := range b.proxy.Requests() {
		asked[masked(q.String()+" "+strings.Trim(q.Namespace+"/"+q.Name, "/"))] = true
	}
	o.requests = append(o.requests, slices.Sorted(maps.Keys(asked)))
	o.reasons = map[string]int{}
	for _, e := range result.Report.Entries {
		o.reasons[e.Reason+" "+e.Outcome]++
	}
	return nil
}

// What differs between any two runs.
var (
	born   = regexp.MustCompile(`(?m)^metadata\.(uid|creationTimestamp): .*$`)
	always = []struct {
		like *regexp.Regexp
		is   string
	}{
		{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000 UTC)?`), "TIME"},
		{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
		{regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?(ms|µs|s)\b`), "DURATION"},
		{regexp.MustCompile(`"version": ".*"`), `"version": "VERSION"`},
	}
)

// mask replaces what differs between any two runs.
func mask(text, run string) string {
	text = strings.ReplaceAll(text, run, "RUN")
	for _, a := range always {
		text = a.like.ReplaceAllString(text, a.is)
	}
	return text
}

// compare says what differs; nothing if nothing does.
func compare(old, now observation) string {
	var all strings.Builder
	for n := range old.reports {
		if diff := cmp.Diff(strings.Split(old.reports[n], "\n"), strings.Split(now.reports[n], "\n")); diff != "" {
			fmt.Fprintf(&all, "report of run %d:\n%s\n", n+1, diff)
		}
		if diff := cmp.Diff(old.requests[n], now.requests[n]); diff != "" {
			fmt.Fprintf(&all, "requests of run %d:\n%s\n", n+1, diff)
		}
	}
	if diff := cmp.Diff(old.stores, now.stores); diff != "" {
		fmt.Fprintf(&all, "stores:\n%s\n", diff)
	}
	return all.String()
}
