package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ip-reaper/ip-reaper/integration/kit/rights"
)

// guests are what other clients of the API server notice of ip-reaper.
type guests struct {
	Alone    latencies `json:"alone"`
	Beside   latencies `json:"beside"`   // a run that releases
	InFlight int       `json:"inFlight"` // the most requests of ip-reaper's at one time
	Requests int       `json:"requests"` // of ip-reaper's, all turns
}

// quiet is how long the other client is measured alone, in each turn.
const quiet = 20 * time.Second

// auditPolicy has the API server note the requests of ip-reaper's account, when they are
// answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  users: ["system:serviceaccount:` + rights.Home + `:` + rights.Home + `"]
- level: None
`

// measureGuest measures another client's latencies, in turns alone and beside a run.
func measureGuest(ctx context.Context, o options, s size, m *measured, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "ip-reaper-audit-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	g, err := openPools(ctx, o, s, map[string]string{"audit-policy-file": policy, "audit-log-path": log}, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	client, err := newForeigner(ctx, g)
	if err != nil {
		return err
	}
	all := &guests{}
	m.Guest = all
	for range o.turns {
		if err := all.turn(ctx, g, client); err != nil {
			return err
		}
	}
	requests, err := readAudit(log)
	if err != nil {
		return err
	}
	all.InFlight, all.Requests = mostAtOnce(requests), len(requests)
	fmt.Fprintf(out, "  guest: alone %s; beside a run %s; ratio of p99 %.2f; %d requests of ip-reaper's, at most %d at a time\n",
		all.Alone, all.Beside, all.Beside.of(99).Seconds()/all.Alone.of(99).Seconds(), all.Requests, all.InFlight)
	return nil
}

// turn measures the other client alone and then beside a run.
func (all *guests) turn(ctx context.Context, g *poolStage, client *foreigner) error {
	alone, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	latencies, err := client.load(alone)
	if err != nil {
		return err
	}
	all.Alone = append(all.Alone, latencies...)

	beside, done := context.WithCancel(ctx)
	defer done()
	var runErr error
	go func() {
		defer done()
		_, runErr = g.reap()(ctx)
	}()
	latencies, err = client.load(beside)
	if err != nil {
		return err
	}
	all.Beside = append(all.Beside, latencies...)
	if runErr != nil && !errors.Is(runErr, errPartial) {
		return runErr
	}
	return g.restore(ctx)
}
