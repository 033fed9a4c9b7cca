package whereabouts_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/generated/clientset/versioned"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// hook is the webhook on the page that shows how to exempt ip-reaper.
const hook = "reservations.whereabouts.example.com"

// asAccount makes the reaper run as the shipped service account, with the shipped rights to
// release.
func (f *fixture) asAccount() {
	f.Helper()
	grant, err := reap.ShippedGrant(reap.ReleaseRights, "whereabouts", "overlapping")
	f.must(err)
	account, err := reap.InstallAccount(f.Context(), f.Cluster, grant)
	f.must(err)
	f.cleanup(account.Remove)
	f.kubeconfig, err = f.KubeconfigFor(f.toReaper.Config(account.Config))
	f.must(err)
}

// cleanup does something when the test ends.
func (f *fixture) cleanup(do func(context.Context) error) {
	t := f.T
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := do(ctx); err != nil {
			t.Error(err)
		}
	})
}

// A guard is a webhook that lets no client write some overlapping reservations, like that of an
// operator that lets only the plugin do so.
type guard struct {
	*httptest.Server
	f       *fixture
	guarded []string
	denied  atomic.Int32
}

// probe is the name of a reservation that shows whether the API server already asks the guard.
const probe = "10.255.255.255"

// guard starts the webhook. It returns once the API server asks it.
func (f *fixture) guard(reservations ...string) *guard {
	f.Helper()
	g := &guard{f: f, guarded: append(reservations, probe)}
	g.Server = httptest.NewTLSServer(g)
	f.Cleanup(g.Close)
	configurations := f.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	rule := admissionregistrationv1.Rule{
		APIGroups: []string{"whereabouts.cni.cncf.io"}, APIVersions: []string{"*"},
		Resources: []string{"overlappingrangeipreservations"},
	}
	url := g.URL + "/"
	_, err := configurations.Create(f.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    hook,
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy:           new(admissionregistrationv1.Fail),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &url, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}, Rule: rule,
			}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "not-by-the-plugin", Expression: "request.userInfo.username != 'system:serviceaccount:kube-system:whereabouts'",
			}},
		}},
	}, metav1.CreateOptions{})
	f.must(err)
	f.cleanup(func(ctx context.Context) error {
		if err := configurations.Delete(ctx, "guard", metav1.DeleteOptions{}); err != nil {
			return err
		}
		cluster.AwaitT(f, "an API server without the guard", func() bool { return f.tryProbe(ctx) == nil })
		return nil
	})
	cluster.AwaitT(f, "the guard", func() bool {
		_ = f.tryProbe(f.Context())
		return g.denied.Load() > 0
	})
	return g
}

// tryProbe creates the probe in a dry run.
func (f *fixture) tryProbe(ctx context.Context) error {
	return f.client().Post().Namespace(cluster.PoolNamespace).Resource("overlappingrangeipreservations").Param("dryRun", "All").
		Body([]byte(`{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"OverlappingRangeIPReservation",
			"metadata":{"name":"` + probe + `"},"spec":{"podref":"shop/probe"}}`)).Do(ctx).Error()
}

// entry returns what the report says about an address.
func (r result) entry(backend, ip string) reap.Entry {
	for _, e := range r.report.Entries {
		if e.Backend == backend && e.IP == ip {
			return e
		}
	}
	return reap.Entry{}
}

// ServeHTTP denies the guarded.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		g.f.Errorf("read the review: %v", err)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if slices.Contains(g.guarded, review.Request.Name) {
		g.denied.Add(1)
		review.Response.Allowed = false
		review.Response.Result = &metav1.Status{Code: http.StatusForbidden, Message: "only the plugin changes podref"}
	}
	if err := json.NewEncoder(w).Encode(review); err != nil {
		g.f.Errorf("write the review: %v", err)
	}
}

// documented returns the file that a page shows, as JSON.
func documented(t *testing.T, page, file string) []byte {
	t.Helper()
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(root), filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "```yaml\n# "+file+"\n")
	block, _, ended := strings.Cut(block, "```")
	if !found || !ended {
		t.Fatalf("%s does not show %s", page, file)
	}
	data, err := yaml.YAMLToJSON([]byte(block))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A webhook that denies the tombstone of one reservation holds back no other, the report says whom
// to exempt, and the exemption works as the page shows it (promises 7 and 9).
func TestWebhookThatDeniesATombstoneKeepsNothingElseBack(t *testing.T) {
	f := newFixture(t)
	f.asAccount()
	f.fill(lan.Range, map[int]string{1: "web-0", 2: "web-1"})
	g := f.guard("10.0.0.1")
	before, asked := f.store(), g.denied.Load()

	const inHome, own = "--state-namespace=" + reap.Home, "backends: {calico: {enabled: false}}\n" // the account's rights
	f.must(reap.Memory{Cluster: f.Cluster, Namespace: reap.Home}.InstallPolicy(t.Context(), header+own))
	got := f.mustReap(reap.ExitPartial, own, inHome)
	want := slices.Concat(
		both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released"),
		both("10.0.0.0-24/2", "10.0.0.2", "10.0.0.2 web-1 orphan PodAbsent released"))
	want[1] = "10.0.0.1 10.0.0.1 web-0 orphan PodAbsent failed"
	f.wantLines(want, got.lines)
	f.wantStore(before.without(got.lines))
	if again := g.denied.Load() - asked; again != 1 {
		t.Errorf("the webhook denied %d writes, want 1", again)
	}
	for _, part := range []string{
		`admission webhook "` + hook + `"`, "OverlappingRangeIPReservation kube-system/10.0.0.1", "only the plugin changes podref",
		"exempt the ServiceAccount of ip-reaper in its matchConditions",
	} {
		if e := got.entry("overlapping", "10.0.0.1"); !strings.Contains(e.Error, part) {
			t.Errorf("the error of 10.0.0.1 is %q, want %q in it", e.Error, part)
		}
	}

	patched, err := f.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(t.Context(), "guard",
		types.StrategicMergePatchType, documented(t, "docs/stores.md", "webhook.yaml"), metav1.PatchOptions{})
	f.must(err)
	if n := len(patched.Webhooks); n != 1 || len(patched.Webhooks[0].MatchConditions) != 2 {
		t.Fatalf("the page makes of the webhook %+v, want one with two conditions", patched.Webhooks)
	}
	cluster.AwaitT(f, "the exemption", func() bool { return f.mayBury("10.0.0.1") })
	f.mustReap(reap.ExitDone, own, inHome)
	f.wantOwners(nothing)
	if f.tryProbe(t.Context()) == nil {
		t.Error("the webhook lets the administrator write, too")
	}
}

// mayBury reports whether the reaper's account may write the reservation.
func (f *fixture) mayBury(reservation string) bool {
	f.Helper()
	config, err := f.ServiceAccount(f.Context(), reap.Home, reap.Home)
	f.must(err)
	clients, err := versioned.NewForConfig(config)
	f.must(err)
	return clients.WhereaboutsV1alpha1().RESTClient().Patch(types.MergePatchType).Namespace(cluster.PoolNamespace).
		Resource("overlappingrangeipreservations").Name(reservation).Param("dryRun", "All").
		Body([]byte(`{"spec":{"podref":"`+tombstone+`"}}`)).Do(f.Context()).Error() == nil
}
