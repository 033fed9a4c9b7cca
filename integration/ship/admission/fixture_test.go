// Package admission_test shows on a real API server which writes the shipped
// ValidatingAdmissionPolicies refuse to the accounts of ip-reaper, and which they let
// pass. The accounts have all rights here, so the policies alone say no.
package admission_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

func TestMain(m *testing.M) {
	kit.Main(m, kit.Options{Sets: []kit.Set{kit.Calico, kit.ReservedIPs}, Policies: true})
}

// The resources that are written here, by a short name.
var resources = map[string]schema.GroupVersionResource{
	"pool":        {Group: "whereabouts.cni.cncf.io", Version: "v1alpha1", Resource: "ippools"},
	"reservation": {Group: "whereabouts.cni.cncf.io", Version: "v1alpha1", Resource: "overlappingrangeipreservations"},
	"block":       {Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"},
	"handle":      {Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamhandles"},
	"affinity":    {Group: "crd.projectcalico.org", Version: "v1", Resource: "blockaffinities"},
	"reserved":    {Group: "network.example.com", Version: "v1alpha1", Resource: "reservedips"},
	"configmap":   {Version: "v1", Resource: "configmaps"},
	"secret":      {Version: "v1", Resource: "secrets"},
	"account":     {Version: "v1", Resource: "serviceaccounts"},
	"namespace":   {Version: "v1", Resource: "namespaces"},
	"pod":         {Version: "v1", Resource: "pods"},
	"node":        {Version: "v1", Resource: "nodes"},
	"core event":  {Version: "v1", Resource: "events"},
	"event":       {Group: "events.k8s.io", Version: "v1", Resource: "events"},
	"lease":       {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	"deployment":  {Group: "apps", Version: "v1", Resource: "deployments"},
	"binding":     {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	"webhook":     {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	"policy":      {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
	"definition":  cluster.Definitions,
}

// A fixture is a cluster with the policies, and one object of each kind.
type fixture struct {
	*testing.T
	*cluster.Cluster
	as map[string]dynamic.Interface // by account
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, Cluster: cluster.StartT(t), as: map[string]dynamic.Interface{}}
	f.ResetT(t)
	for _, account := range []string{reap.RunAccount, reap.OutageAccount, reap.RestoreAccount} {
		f.user(account, "system:serviceaccount:"+reap.HomeOf(account)+":"+account)
	}
	f.user(operator, "jane", reap.Operators)
	f.must(f.CreateNamespace(t.Context(), reap.Home))
	f.create("block", newBlock(64, "h0", "h1", "h2").json(t, "block"))
	for _, o := range there {
		f.create(o.kind, o.json)
	}
	return f
}

// operator is a person in the group of operators.
const operator = "operator"

// user adds an account by a short name, as a user with all rights, so that only the policies say no.
func (f *fixture) user(account, name string, groups ...string) {
	f.Helper()
	config, err := f.User(name, append(groups, "system:masters")...)
	f.must(err)
	config.UserAgent = "ip-reaper/test" // by which the API server names the manager of fields
	f.as[account], err = dynamic.NewForConfig(config)
	f.must(err)
}

// must ends the test at an error.
func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// create creates an object as the administrator.
func (f *fixture) create(kind, text string) {
	f.Helper()
	o := object(f.T, text)
	_, err := f.Dynamic.Resource(resources[kind]).Namespace(o.GetNamespace()).Create(f.Context(), o, metav1.CreateOptions{})
	f.must(err)
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var o unstructured.Unstructured
	if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return &o
}

// A write is one request of an account. Its target is a kind and, unless it is a
// creation, namespace/name or a name.
type write struct {
	name   string
	by     string // a policy, or one of several; nothing if the write passes
	verb   string // create, patch or delete
	target string
	body   string // an object, or a JSON patch
}

// try sends the write without effect, and returns what refused it: a policy, nothing, or
// another error.
func (f *fixture) try(account string, w write) (by string, err error) {
	kind, path, _ := strings.Cut(w.target, ": ")
	path, sub, _ := strings.Cut(path, " ")
	namespace, name, namespaced := strings.Cut(path, "/")
	if !namespaced {
		namespace, name = "", path
	}
	resource, ok := resources[kind]
	if !ok {
		f.Fatalf("%s: no kind %q", w.name, kind)
	}
	client := f.as[account].Resource(resource)
	dry := []string{metav1.DryRunAll}
	var subs []string
	if sub != "" {
		subs = []string{sub}
	}
	switch w.verb {
	case "create":
		if sub != "" {
			return f.subresource(account, namespace, name, sub)
		}
		o := object(f.T, w.body)
		_, err = client.Namespace(o.GetNamespace()).Create(f.Context(), o, metav1.CreateOptions{DryRun: dry}, subs...)
	case "patch":
		_, err = client.Namespace(namespace).Patch(f.Context(), name, types.JSONPatchType, []byte(w.body), metav1.PatchOptions{DryRun: dry}, subs...)
	case "delete":
		err = client.Namespace(namespace).Delete(f.Context(), name, metav1.DeleteOptions{DryRun: dry})
	case "collect":
		err = client.Namespace(namespace).DeleteCollection(f.Context(), metav1.DeleteOptions{DryRun: dry}, metav1.ListOptions{})
	default:
		f.Fatalf("%s: no verb %q", w.name, w.verb)
	}
	return refusedBy(err)
}

// refusedBy returns the policy of a refusal, and nothing if there is none.
func refusedBy(err error) (string, error) {
	if err == nil {
		return "", nil
	}
	if found := refusal.FindStringSubmatch(err.Error()); found != nil && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err)) {
		return found[1], err
	}
	return "another error", err
}

var refusal = regexp.MustCompile(`ValidatingAdmissionPolicy 'ip-reaper-([a-z-]+)' with binding 'ip-reaper-[a-z-]+' denied request: [^:]*$`)

// each tries all writes, and fails the test where another policy refuses than wanted.
func (f *fixture) each(account string, writes []write) {
	f.Helper()
	for _, w := range writes {
		by, err := f.try(account, w)
		if !slices.Contains(strings.Split(w.by, "|"), by) {
			f.Errorf("%s by %s: refused by %q, want %q: %v", w.name, account, by, w.by, err)
		}
	}
}

// releasing tries all writes by the accounts that release. With -short, the second one, which the
// same policies name, tries one write that each policy refuses.
func (f *fixture) releasing(writes ...write) {
	f.Helper()
	f.each(reap.RunAccount, writes)
	seen := make(map[string]bool)
	f.each(reap.OutageAccount, slices.DeleteFunc(slices.Clone(writes), func(w write) bool {
		again := seen[w.by] || w.by == ""
		seen[w.by] = true
		return again && testing.Short()
	}))
}

// subresource creates the subresource of a pod or of an account, without effect.
func (f *fixture) subresource(account, namespace, name, sub string) (by string, err error) {
	f.Helper()
	body, of := map[string]string{
		"eviction": `{"apiVersion":"policy/v1","kind":"Eviction"`,
		"binding":  `{"apiVersion":"v1","kind":"Binding","target":{"kind":"Node","name":"node-1"}`,
		"token":    `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"audiences":[]}`,
	}[sub], "pod"
	if sub == "token" {
		of = "account"
	}
	o := object(f.T, body+`,"metadata":{"namespace":"`+namespace+`","name":"`+name+`"}}`)
	_, err = f.as[account].Resource(resources[of]).Namespace(namespace).Create(f.Context(), o,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}, sub)
	return refusedBy(err)
}
