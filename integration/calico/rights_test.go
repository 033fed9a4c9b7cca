package calico_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/rights"
)

// inHome has the ledger where the account may write it.
const inHome = "--namespace=" + rights.Home

// alone is the part of a policy by which nobody else looks.
const alone = "backends:\n  whereabouts: {enabled: false}\n  overlapping: {enabled: false}\n"

// shipped are the rights of an installation with these backends, each resource in a
// rule of its own.
func (s *fixture) shipped(mode string, backends ...string) rights.Grant {
	s.Helper()
	g, err := rights.Shipped(mode, backends...)
	s.must(err)
	return g.Split()
}

// install makes the scene's runs, through the proxy, those of a service account
// with the rights.
func (s *fixture) install(p *proxy.Proxy, g rights.Grant) *rights.Account {
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

// errand is work that needs every right that a run on Calico can need, done in two
// runs: the first creates the ledger, and waits; the second updates it, writes a
// journal, has that of the last errand to delete, and releases addresses of handles
// that then have others and of handles that have none, and of a handle that somebody
// else writes meanwhile. It returns what went wrong, or nothing. What only disturbs is
// in the warnings.
func (w *wreck) errand() (wrong string) {
	w.Helper()
	w.again()
	w.forget()
	w.toReaper.Before(proxy.Nth(1, proxy.On("delete ipamhandles")), func(ctx context.Context, r proxy.Request) proxy.Action {
		err := w.Edit(ctx, calico.Handle, r.Name, func(h map[string]any) { h["later"] = "touched" })
		if err != nil {
			w.Error(err)
		}
		return proxy.Pass()
	})
	for _, grace := range []string{"1h", "0s"} {
		nextSecond()
		policy := strings.Replace(releaseNow, "gracePeriod: 0s", "gracePeriod: "+grace, 1) + alone + "journal: {keep: 1}\n"
		result := w.reap(policy, inHome)
		if result.ExitCode != reap.ExitDone || len(result.Report.Warnings) > 0 {
			return fmt.Sprintf("with a grace period of %s: the run exits with %d and warns of %v", grace, result.ExitCode, result.Report.Warnings)
		}
	}
	for _, ip := range w.ips {
		if w.held()[ip.String()] {
			return fmt.Sprintf("%s is not released", ip)
		}
	}
	w.wantCounts()
	return ""
}

// forget removes lock and ledger in the account's namespace.
func (w *wreck) forget() {
	w.Helper()
	leases, maps := w.Cluster.Kube.CoordinationV1().Leases(rights.Home), w.Cluster.Kube.CoreV1().ConfigMaps(rights.Home)
	for _, err := range []error{
		leases.Delete(w.Context(), "ip-reaper", metav1.DeleteOptions{}),
		maps.Delete(w.Context(), "ip-reaper-ledger", metav1.DeleteOptions{}),
	} {
		if !apierrors.IsNotFound(err) {
			w.must(err)
		}
	}
}

// nextSecond returns in another second than it was called in: of two journals the
// older one is known by the second in which it was made.
func nextSecond() { time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) }

// A service account with exactly the roles that are shipped for Calico releases; with
// any one verb less it does not, so that none of them is too many.
func TestShippedRolesSufficeForARunAndNoVerbIsTooMany(t *testing.T) {
	w := newWreck(t)
	w.defineMigrations()
	g := w.shipped(rights.Release, "calico")
	a := w.install(w.toReaper, g)
	if wrong := w.errand(); wrong != "" {
		t.Fatalf("with the roles as shipped: %s", wrong)
	}
	for _, v := range g.Verbs() {
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
}

// The read-only roles suffice for a dry run, none of their verbs is too many,
// and a run that is told to release releases nothing with them (promise 5).
func TestShippedPlanRolesSufficeForADryRunAndForNothingElse(t *testing.T) {
	w := newWreck(t)
	w.defineMigrations()
	g := w.shipped(rights.Plan, "calico")
	a := w.install(w.toReaper, g)
	before, err := w.Versions(t.Context())
	w.must(err)
	if got := w.mustReap(reap.ExitDone, releaseNow+alone, inHome, "--dry-run").Summary.Planned; got != len(w.ips) {
		t.Errorf("%d releases are planned, want %d", got, len(w.ips))
	}
	w.releasesNothing(before)
	for _, v := range g.Verbs() {
		t.Run("without "+v.Of(g), func(t *testing.T) {
			w.T = t
			w.must(a.Lose(t.Context(), g, v))
			if w.reap(releaseNow+alone, inHome, "--dry-run").ExitCode == reap.ExitDone {
				t.Error("the dry run succeeds all the same: the verb is superfluous")
			}
		})
	}
}

// releasesNothing has a run try to release what it may not, and returns its report.
func (w *wreck) releasesNothing(before map[string]string) *reap.Report {
	w.Helper()
	report := w.mustReap(reap.ExitPartial, releaseNow, inHome)
	w.wantTrue(report)
	if got := report.Summary.Released; got != 0 {
		w.Errorf("the report says that %d were released", got)
	}
	after, err := w.Versions(w.Context())
	w.must(err)
	if diff := cmp.Diff(before, after); diff != "" {
		w.Errorf("versions (-before +after):\n%s", diff)
	}
	return report
}

// Without its role Calico's backend says that it failed, and by what, and counts
// nothing as looked at; the others go on (promises 9 and 11).
func TestCalicoWithoutItsRoleFailsAndTheOthersGoOn(t *testing.T) {
	for _, mode := range []string{rights.Plan, rights.Release} {
		t.Run(mode, func(t *testing.T) {
			w := newWreck(t)
			w.install(w.toReaper, w.shipped(mode, "whereabouts", "overlapping"))
			before, err := w.Versions(t.Context())
			w.must(err)
			for _, b := range w.releasesNothing(before).Backends {
				if b.Name != "calico" {
					if b.Status != "ok" {
						t.Errorf("%s is %s: %s", b.Name, b.Status, b.Message)
					}
					continue
				}
				if b.Status != "failed" || !strings.Contains(b.Message, "forbidden") || b.Summary != (reap.Summary{}) {
					t.Errorf("calico is %s: %q, with %+v; want that it failed, forbidden, and nothing counted", b.Status, b.Message, b.Summary)
				}
			}
		})
	}
}

// Where the data is in etcd, nothing of Calico's role is needed, as in
// components/calico-etcd.
func TestRunNeedsNoRoleOfCalicoWhereTheDataIsInEtcd(t *testing.T) {
	s := newFixture(t, calico.EtcdT(t))
	_, ip := s.leak("gone")
	_, web := s.live("web")
	s.install(s.watched(), s.shipped(rights.Release, "whereabouts", "overlapping"))
	report := s.mustReap(reap.ExitDone, releaseNow, inHome)
	s.wantOutcomes(report, map[netip.Addr]string{ip: "released", web: "kept"})
	s.wantWhole(map[string]bool{web.String(): true})
}
