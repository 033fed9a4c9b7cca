package crash_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	whereabouts "github.com/k8snetworkplumbingwg/whereabouts/pkg/generated/clientset/versioned"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// plain is the beginning of a policy without reserved IPs, whose resources the
// shipped roles cannot know.
var plain, _, _ = strings.Cut(kit.Policy, "backends:")

// stores are the backends that have a role of their own.
var stores = []string{"whereabouts", "overlapping", "calico"}

// only is the part of a policy by which no other backend looks.
func only(backend string) string {
	text := "backends:\n"
	for _, other := range stores {
		if other != backend {
			text += "  " + other + ": {enabled: false}\n"
		}
	}
	return text
}

// install makes the world's processes those of a service account with the rights.
func install(w *kit.World, g reap.Grant) *reap.Account {
	w.Helper()
	a, err := reap.InstallAccount(w.Context(), w.Cluster, g)
	w.Must(err)
	t := w.T // which a subtest may replace
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := a.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	w.As(a)
	return a
}

// defineMigrations defines the resource by which Calico 3.32 moves its data, until
// the test ends.
func defineMigrations(w *kit.World) {
	w.Helper()
	file := filepath.Join(w.TempDir(), "datastoremigrations.yaml")
	w.Must(os.WriteFile(file, []byte(`
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
	w.Cluster.DefineT(w.T, file)
}

// shipped are the rights of an installation with these backends.
func shipped(w *kit.World, mode string, backends ...string) reap.Grant {
	w.Helper()
	g, err := reap.ShippedGrant(mode, backends...)
	w.Must(err)
	return g
}

// An errand is work that needs every right that a run with one backend can need.
type errand struct {
	backend string
	planned int
	begin   func(w *kit.World)
	left    func(w *kit.World) string // what is wrong with the store in the end, or nothing
}

// errands are one for each backend.
var errands = []errand{
	{
		// A pool changes under the patch.
		backend: "whereabouts", planned: 3,
		begin: func(w *kit.World) {
			pool := strings.ReplaceAll(kit.LAN.Range, "/", "-")
			w.Proxy.Before(proxy.Nth(1, func(r proxy.Request) bool { return r.String() == "patch ippools" && r.Name == pool }),
				func(ctx context.Context, _ proxy.Request) proxy.Action {
					_, err := w.Cluster.Whereabouts.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace).Patch(ctx, pool,
						types.MergePatchType, []byte(`{"spec":{"allocations":{"3":{"id":"another"}}}}`), metav1.PatchOptions{})
					if err != nil {
						w.Error(err)
					}
					return proxy.Pass()
				})
		},
		left: func(w *kit.World) string {
			return owners(w, map[string]string{"10.1.0.0-24 10.1.0.3": kit.Shop + "/gone-2 another"},
				"10.1.0.0-24 10.1.0.1", "10.2.0.0-24 10.2.0.2")
		},
	},
	{
		// A tombstone was left. Only reservations whose addresses are in no pool go where pools are
		// not looked at.
		backend: "overlapping", planned: 4,
		begin: func(w *kit.World) {
			for ip, pod := range map[string]string{"10.3.0.1": "gone-1", "10.3.0.2": "live", "10.3.0.3": "gone-3"} {
				reserve(w, ip, pod)
			}
			_, err := w.Cluster.Whereabouts.WhereaboutsV1alpha1().OverlappingRangeIPReservations(cluster.PoolNamespace).Patch(w.Context(),
				"10.3.0.1", types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"ip-reaper/spec":"{\"podref\":\"`+kit.Shop+`/gone-1\"}"}},"spec":{"podref":"_ip-reaper/_released"}}`),
				metav1.PatchOptions{})
			w.Must(err)
		},
		left: func(w *kit.World) string {
			return owners(w, map[string]string{"10.3.0.2": kit.Shop + "/live"})
		},
	},
	{
		// A handle changes before it is deleted.
		backend: "calico", planned: 3,
		begin: func(w *kit.World) {
			w.Must(w.Delete(w.Context(), calico.Handle, w.HandleName(w.Empty))) // it would have to wait
			w.Proxy.Before(proxy.Nth(1, proxy.On("delete ipamhandles")), func(ctx context.Context, r proxy.Request) proxy.Action {
				if err := w.Edit(ctx, calico.Handle, r.Name, func(h map[string]any) { h["later"] = "touched" }); err != nil {
					w.Error(err)
				}
				return proxy.Pass()
			})
		},
		left: func(w *kit.World) string {
			if err := w.Counted(w.Context()); err != nil {
				return err.Error()
			}
			return cmp.Diff(blocks(w.End), blocks(w.Stores()))
		},
	},
}

// owners compares who has the addresses of Whereabouts with who had them, but for
// these.
func owners(w *kit.World, differ map[string]string, gone ...string) string {
	want := w.Before.Owners()
	maps.Copy(want, differ)
	for _, place := range gone {
		delete(want, place)
	}
	return cmp.Diff(want, w.Stores().Owners())
}

// blocks is who has which addresses of Calico's.
func blocks(s kit.Store) map[string]string {
	all := kit.Store{}
	for path, o := range s {
		if o.Resource == kit.Blocks {
			all[path] = o
		}
	}
	return all.Held()
}

// reserve creates a reservation as the plugin would.
func reserve(w *kit.World, ip, pod string) {
	w.Helper()
	_, err := w.Cluster.Whereabouts.WhereaboutsV1alpha1().OverlappingRangeIPReservations(cluster.PoolNamespace).
		Create(w.Context(), &v1alpha1.OverlappingRangeIPReservation{
			ObjectMeta: metav1.ObjectMeta{Name: ip},
			Spec:       v1alpha1.OverlappingRangeIPReservationSpec{PodRef: kit.Shop + "/" + pod, IfName: "net1"},
		}, metav1.CreateOptions{})
	w.Must(err)
}

// prepare makes the world what it is before the errand, without a ledger.
func (e errand) prepare(w *kit.World) {
	w.Helper()
	w.Proxy.Reset()
	w.Must(w.Memory.ForgetLedger(w.Context()))
	w.Must(w.Memory.Unlock(w.Context()))
	w.Put(w.Before)
	e.begin(w)
}

// release does the errand in two runs: the first creates the ledger; the second updates it,
// releases, writes a journal and deletes that of the errand before.
func (e errand) release(w *kit.World) {
	w.Helper()
	// Of two journals the older one is known by the second in which it was made.
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	e.prepare(w)
	for _, grace := range []string{"1h", "0s"} {
		policy := strings.Replace(plain, "keep: 100", "keep: 1, keepFor: 0s", 1) + "gracePeriod: " + grace + "\n" + only(e.backend)
		if warnings := w.Ends(reap.ExitDone, w.Starts("run", policy)).Report.Warnings; len(warnings) > 0 {
			w.Errorf("with a grace period of %s the run warns of %v", grace, warnings)
		}
	}
	if wrong := e.left(w); wrong != "" {
		w.Error(wrong)
	}
}

// plan plans the errand, and remembers what it saw.
func (e errand) plan(w *kit.World) {
	w.Helper()
	policy := plain + "gracePeriod: 0s\n" + only(e.backend)
	e.prepare(w)
	releasesNothing(w, policy)
	w.Must(w.Memory.ForgetLedger(w.Context()))
	w.Must(w.Memory.InstallLedger(w.Context()))
	w.Proxy.Reset()
	r := w.Ends(reap.ExitDone, w.Starts("run", policy, "--dry-run", "--remember")).Report
	if r.Summary.Planned != e.planned || len(r.Warnings) > 0 {
		w.Errorf("%d releases are planned, want %d, with warnings %v", r.Summary.Planned, e.planned, r.Warnings)
	}
}

// The roles that are shipped for one backend suffice for a release, and those of a plan for a dry
// run that remembers; with these, a run that is told to release releases nothing (promise 5).
// The role of the account that restores suffices to put everything back, also where a tombstone
// still stands. Everything that the roles allow is asked for, so that nothing is too much.
func TestShippedRolesAreWhatIsNeeded(t *testing.T) {
	w, _ := fixture(t)
	defineMigrations(w)
	w.Cluster.DefineMachinesT(t)
	for _, e := range errands {
		unasked := []string{"list ipamclaims", "list events"} // for what Whereabouts of today does not store
		if e.backend == "calico" {
			unasked = []string{"list ipamconfigurations"} // of Calico that has its resources under their own names
		}
		w.Sub("release "+e.backend, func() {
			g := shipped(w, reap.ReleaseRights, e.backend)
			install(w, g)
			for range 2 { // the second time there is a journal to delete
				e.release(w)
			}
			wantAsked(w, g, unasked...)
		})
		w.Sub("plan "+e.backend, func() {
			g := shipped(w, reap.PlanRights, e.backend)
			install(w, g)
			e.plan(w)
			wantAsked(w, g, append(unasked, "get pods")...) // for what looks wrong, which nothing does here
		})
	}
	w.Sub("restore", func() {
		w.As(nil)
		w.Again()
		policy := plain + "gracePeriod: 0s\n"
		w.Run(policy)
		id := w.Journals()[0]
		g, err := reap.RestoreGrant()
		w.Must(err)
		install(w, g)
		interrupt(w, "10.1.0.3")
		w.Must(w.Memory.Unlock(w.Context()))
		w.Proxy.Reset()
		result := w.Ends(reap.ExitDone, w.Starts("restore", policy, "--run="+id))
		if warnings := w.RestoreReportOf(result).Warnings; len(warnings) > 0 || strings.Contains(result.Stderr, `"level":"WARN"`) {
			w.Errorf("it warns of %q\n%s", warnings, result.Stderr)
		}
		w.WantStores("after the restoration", w.Before)
		wantAsked(w, g)
	})
}

// Who has the role to look can plan, explain, list pools and history, and see what a restore would put
// back, and release nothing: the hint names the rule that is missing, and the role that has it. Who has
// the role of an operator, and is in the group that the policies hold, can release and restore from a
// workstation, and nothing else.
func TestRolesOfPeopleAreWhatIsNeeded(t *testing.T) {
	w, _ := fixture(t)
	defineMigrations(w)
	w.Cluster.DefineMachinesT(t)
	policy := plain + "gracePeriod: 0s\n"
	as := func(role string) (*reap.Account, reap.Grant) {
		g, err := reap.PeopleGrant(role)
		w.Must(err)
		return install(w, g), g
	}
	quiet := func(result reap.Result) {
		w.Helper()
		if strings.Contains(result.Stderr, `"level":"WARN"`) {
			w.Errorf("it warns:\n%s", result.Stderr)
		}
	}
	unasked := []string{"list ipamclaims", "list events", "list ipamconfigurations", "get cronjobs", "get jobs", "list jobs"}
	w.Sub("view", func() {
		w.Again()
		released := w.Run(policy).Report.Summary.Released
		id := w.Journals()[0]
		_, g := as("view")
		w.Proxy.Reset()
		result := w.Ends(reap.ExitDone, w.Starts("restore", policy, "--run="+id, "--dry-run=true"))
		quiet(result)
		if got := w.RestoreReportOf(result).Summary.Planned; got == 0 || got != released {
			w.Errorf("it would put back %d of %d", got, released)
		}
		w.Put(w.Before)
		quiet(w.Ends(reap.ExitDone, w.Starts("run", policy, "--dry-run", "-n="+kit.Shop)))
		quiet(w.Ends(reap.ExitDone, w.Starts("explain", policy, "10.1.0.3")))
		quiet(w.Ends(reap.ExitDone, w.Starts("pools", policy)))
		quiet(w.Ends(reap.ExitDone, w.Starts("status", policy)))
		quiet(w.Ends(reap.ExitDone, w.Starts("history", policy)))
		quiet(w.Ends(reap.ExitUsage, w.Starts("run", policy, "--dry-run", "-n=no-such-namespace")))
		wantAsked(w, g, append(unasked, "get pods")...)
		report := releasesNothing(w, policy)
		for _, says := range []string{"create configmaps in namespace " + kit.Home, "Role ip-reaper-operator"} {
			if !slices.ContainsFunc(report.Warnings, func(warning string) bool { return strings.Contains(warning, says) }) {
				w.Errorf("no warning says %q: %q", says, report.Warnings)
			}
		}
		w.WantStores("after a release that is forbidden", w.Before)
	})
	w.Sub("operator", func() {
		w.As(nil)
		w.Again()
		a, g := as("operator")
		result := w.Run(policy)
		quiet(result)
		if result.Report.Summary.Released == 0 {
			w.Error("nothing was released")
		}
		w.Must(w.Memory.Unlock(w.Context()))
		quiet(w.Ends(reap.ExitDone, w.Starts("restore", policy, "--run="+w.Journals()[0])))
		w.WantStores("after the restoration", w.Before)
		ledger, recorded := pastRuns(w, w.Ends(reap.ExitDone, w.Starts("history", policy)).Stdout), pastRuns(w, w.Journal())
		if len(ledger) < 2 || len(recorded) != 1 {
			w.Fatalf("the ledger has %d runs, and the journal %d, want the run and its restore, and the run", len(ledger), len(recorded))
		}
		by := "user " + cluster.ContextName + " as " + a.Config.Impersonate.UserName + " in "
		for _, r := range slices.Concat(ledger[:2], recorded) {
			if !strings.HasPrefix(r.By, by) {
				w.Errorf("run %s is by %q, want %q", r.ID, r.By, by)
			}
		}
		wantAsked(w, g, append(unasked, "delete configmaps")...)
		kube, err := kubernetes.NewForConfig(a.Config)
		w.Must(err)
		pods, configMaps := kube.CoreV1().Pods(kit.Shop), kube.CoreV1().ConfigMaps(kit.Home)
		pools, err := whereabouts.NewForConfig(a.Config)
		w.Must(err)
		name := strings.ReplaceAll(kit.LAN.Range, "/", "-")
		for what, err := range map[string]error{
			"delete a pod":      pods.Delete(w.Context(), "live", metav1.DeleteOptions{}),
			"delete a pool":     pools.WhereaboutsV1alpha1().IPPools(cluster.PoolNamespace).Delete(w.Context(), name, metav1.DeleteOptions{}),
			"delete the policy": configMaps.Delete(w.Context(), "ip-reaper-policy", metav1.DeleteOptions{}),
		} {
			if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
				w.Errorf("%s: %v, want a refusal", what, err)
			}
		}
	})
}

// pastRuns returns the runs that history printed.
func pastRuns(w *kit.World, printed string) []journal.PastRun {
	w.Helper()
	var h struct {
		Runs []journal.PastRun `json:"runs"`
	}
	w.Must(json.Unmarshal([]byte(printed), &h))
	return h.Runs
}

// wantAsked fails the test unless the API server was asked for all that a grant allows, but for
// some.
func wantAsked(w *kit.World, g reap.Grant, but ...string) {
	w.Helper()
	asked := w.Proxy.Counts()
	for _, verb := range g.Verbs() {
		if (asked[verb] > 0) == slices.Contains(but, verb) {
			w.Errorf("%s is granted, and was asked for %d times", verb, asked[verb])
		}
	}
}

// releasesNothing has a run try to release what it may not, and returns its report.
func releasesNothing(w *kit.World, policy string) *reap.Report {
	w.Helper()
	before, err := w.Cluster.Versions(w.Context())
	w.Must(err)
	w.Must(w.Memory.Unlock(w.Context()))
	result := w.Ends(reap.ExitPartial, w.Starts("run", policy, "--all"))
	wantNamed(w, result)
	wantTrue(w, result.Report)
	if got := result.Report.Summary.Released; got != 0 {
		w.Errorf("the report says that %d were released", got)
	}
	after, err := w.Cluster.Versions(w.Context())
	w.Must(err)
	if diff := cmp.Diff(reap.StoreObjects(before), reap.StoreObjects(after)); diff != "" {
		w.Errorf("versions (-before +after):\n%s", diff)
	}
	return result.Report
}

// interrupt puts the overlapping reservation of an address back, as a run leaves it that
// was killed before it deleted the reservation: with a tombstone.
func interrupt(w *kit.World, ip string) {
	w.Helper()
	for path, o := range w.Before {
		if o.Resource != kit.Reservations || o.Name != ip {
			continue
		}
		var was struct{ Spec json.RawMessage }
		w.Must(json.Unmarshal(o.Raw, &was))
		w.Must(o.Create(w.Context(), w.Cluster))
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"annotations": map[string]string{"ip-reaper/spec": string(was.Spec)}},
			"spec":     map[string]string{"podref": "_ip-reaper/_released"},
		})
		w.Must(err)
		w.Must(w.Cluster.Kube.Discovery().RESTClient().Patch(types.MergePatchType).AbsPath(path).Body(patch).Do(w.Context()).Error())
		return
	}
	w.Fatalf("no reservation of %s was there", ip)
}
