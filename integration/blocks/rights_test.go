package blocks_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ip-reaper/ip-reaper/integration/calico"
	"github.com/ip-reaper/ip-reaper/integration/proxy"
	"github.com/ip-reaper/ip-reaper/integration/reap"
	"github.com/ip-reaper/ip-reaper/integration/rights"
)

// inHome has the ledger where the account may write it.
const inHome = "--namespace=" + rights.Home

// calicoRole is what Calico's role is called.
const calicoRole = "ip-reaper-calico"

// shipped reads roles of deploy/rbac, each resource in a rule of its own.
func (s *scene) shipped(files ...string) rights.Grant {
	s.Helper()
	g, err := rights.Shipped(files...)
	s.must(err)
	return g.Split()
}

// install makes the scene's runs, through the proxy, those of a service account
// with the rights.
func (s *scene) install(p *proxy.Proxy, g rights.Grant) *rights.Account {
	s.Helper()
	t := s.T // which a subtest may replace
	a, err := rights.Install(s.Context(), s.Cluster, g)
	s.must(err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := a.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	s.kubeconfig, err = s.Cluster.KubeconfigFor(p.Config(a.Config))
	s.must(err)
	return a
}

// defineMigrations defines the resource by which Calico 3.32 moves its data.
func (w *wreck) defineMigrations() {
	w.Helper()
	file := filepath.Join(w.TempDir(), "datastoremigrations.yaml")
	w.must(os.WriteFile(file, []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: datastoremigrations.migration.projectcalico.org}
spec:
  group: migration.projectcalico.org
  names: {kind: DatastoreMigration, listKind: DatastoreMigrationList, plural: datastoremigrations, singular: datastoremigration}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`), 0o600))
	options := envtest.CRDInstallOptions{Paths: []string{file}, ErrorIfPathMissing: true, MaxTime: time.Minute}
	_, err := envtest.InstallCRDs(w.Cluster.Config, options)
	w.must(err)
	t, config := w.T, w.Cluster.Config
	t.Cleanup(func() {
		if err := envtest.UninstallCRDs(config, options); err != nil {
			t.Error(err)
		}
	})
}

// errand is work that needs every right that Calico's role gives: addresses are
// released of handles that then have others and of handles that have none, and
// of a handle that somebody else writes meanwhile. It returns what went wrong, or
// nothing.
func (w *wreck) errand() (wrong string) {
	w.Helper()
	w.again()
	w.toReaper.Before(proxy.Nth(1, proxy.On("delete ipamhandles")), func(ctx context.Context, r proxy.Request) proxy.Action {
		err := w.Edit(ctx, calico.Handle, r.Name, func(h map[string]any) { h["later"] = "touched" })
		if err != nil {
			w.Error(err)
		}
		return proxy.Pass()
	})
	result := w.reap(releaseNow, inHome)
	if result.ExitCode != reap.ExitDone {
		return fmt.Sprintf("the run exits with %d", result.ExitCode)
	}
	for _, ip := range w.ips {
		if w.held()[ip.String()] {
			return fmt.Sprintf("%s is not released", ip)
		}
	}
	w.wantCounts()
	return ""
}

// A service account with exactly the roles that deploy/rbac ships releases; with
// any one verb of Calico's less it does not, so that none of them is too many.
func TestShippedRolesSufficeForARunAndNoVerbIsTooMany(t *testing.T) {
	w := newWreck(t)
	w.defineMigrations()
	g := w.shipped("run", "run-binding", "calico-run")
	a := w.install(w.toReaper, g)
	if wrong := w.errand(); wrong != "" {
		t.Fatalf("with the roles as shipped: %s", wrong)
	}
	tried := 0
	for _, v := range g.Verbs() {
		if v.Role(g) != calicoRole {
			continue
		}
		tried++
		t.Run("without "+v.Of(g), func(t *testing.T) {
			w.T = t
			w.must(a.Lose(t.Context(), g, v))
			if wrong := w.errand(); wrong == "" {
				t.Error("the run succeeds all the same: the verb is superfluous")
			} else {
				t.Log(wrong)
			}
		})
	}
	if tried == 0 {
		t.Error("Calico's role gives nothing")
	}
}

// The read-only roles suffice for a dry run, none of Calico's verbs is too many,
// and a run that is told to release releases nothing with them (promise 5).
func TestShippedPlanRolesSufficeForADryRunAndForNothingElse(t *testing.T) {
	w := newWreck(t)
	w.defineMigrations()
	g := w.shipped("plan", "plan-binding", "calico-plan")
	a := w.install(w.toReaper, g)
	before, err := w.Versions(t.Context())
	w.must(err)
	if got := w.mustReap(reap.ExitDone, releaseNow, inHome, "--dry-run").Summary.Planned; got != len(w.ips) {
		t.Errorf("%d releases are planned, want %d", got, len(w.ips))
	}
	report := w.mustReap(reap.ExitPartial, releaseNow, inHome)
	w.wantTrue(report)
	if got := report.Summary.Released; got != 0 {
		t.Errorf("the report says that %d were released", got)
	}
	after, err := w.Versions(t.Context())
	w.must(err)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("versions (-before +after):\n%s", diff)
	}
	for _, v := range g.Verbs() {
		if v.Role(g) != "ip-reaper-calico-plan" {
			continue
		}
		t.Run("without "+v.Of(g), func(t *testing.T) {
			w.T = t
			w.must(a.Lose(t.Context(), g, v))
			if w.reap(releaseNow, inHome, "--dry-run").ExitCode == reap.ExitDone {
				t.Error("the dry run succeeds all the same: the verb is superfluous")
			}
		})
	}
}

// Where the data is in etcd, the nodes are all that is needed of Calico's role.
func TestNodesAreAllThatARunNeedsWhereTheDataIsInEtcd(t *testing.T) {
	s := newScene(t, calico.EtcdT(t))
	_, ip := s.leak("gone")
	_, web := s.live("web")
	g := s.shipped("run", "run-binding", "calico-run")
	for _, v := range g.Verbs() {
		if v.Role(g) == calicoRole && v.Of(g) != "list nodes" {
			g = g.Without(v)
		}
	}
	s.install(s.watched(), g)
	report := s.mustReap(reap.ExitDone, releaseNow, inHome)
	s.wantOutcomes(report, map[netip.Addr]string{ip: "released", web: "kept"})
	s.wantWhole(map[string]bool{web.String(): true})
}
