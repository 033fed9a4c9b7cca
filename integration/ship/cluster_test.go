// Package ship_test proves what is shipped as an operator uses it: manifests that the real kubectl
// renders and applies, the chart that Helm's own library renders to the same objects, the plugin of
// kubectl, the commands of the pages, the HTML report in a real Chromium, and the rules and dashboards
// for Prometheus. It compares what the pages name with what there is.
package ship_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ip-reaper-audit-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := calico.Run(m, func(ctx context.Context) (cluster.Options, error) { return options(ctx, dir) })
	stopBrowser()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// auditLog is the file of the API server's audit log.
var auditLog string

// options are those of a cluster with all stores, and with the audit policy of the pages:
// the API server does not start with one that is wrong.
func options(ctx context.Context, dir string) (cluster.Options, error) {
	blocks, blocksErr := calico.CRDs(ctx)
	attachments, attachmentsErr := cluster.NetworkAttachmentCRD()
	text, textErr := auditPolicy()
	audit := filepath.Join(dir, "audit-policy.yaml")
	auditLog = filepath.Join(dir, "audit.log")
	limits, limitsErr := filepath.Abs(filepath.Join("testdata", "admission.yaml"))
	return cluster.Options{
		CRDs: []string{blocks, attachments},
		Flags: map[string]string{
			"audit-policy-file": audit, "audit-log-path": auditLog, "admission-control-config-file": limits,
		},
	}, errors.Join(limitsErr, blocksErr, attachmentsErr, textErr, os.WriteFile(audit, []byte(text), 0o600))
}

// auditPolicy is the one that a page advises.
func auditPolicy() (string, error) {
	all, err := readPages()
	for _, p := range all {
		for _, b := range p.blocks {
			if b.file() == "audit-policy.yaml" {
				return b.text(), nil
			}
		}
	}
	return "", errors.Join(err, errors.New("no page has an audit-policy.yaml"))
}

// fresh returns the cluster as it was when it had started, with a datastore of Calico's
// that is ready.
func fresh(t *testing.T) *cluster.Cluster {
	t.Helper()
	return calico.KubernetesT(t).Cluster
}
