package calico_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Since Calico 3.32 the data may be in projectcalico.org/v3, and move there. This is
// such a move, as it is seen from here: the data has to be left alone while it
// moves, and it is the live one that counts then.
func TestDataMovesToAnotherAPIGroup(t *testing.T) {
	crds, v3 := t.TempDir(), t.TempDir()
	if err := calico.LooseCRDs(t.Context(), crds); err != nil {
		t.Fatal(err)
	}
	m := move{newFixture(t, calico.KubernetesT(t))}
	t.Cleanup(func() { m.undo(t, crds, v3) })
	_, ip := m.live("web")
	var names []string
	leak := func() { // one more, in that of the groups which the plugin knows
		_, ip := m.leak("gone")
		names = append(names, ip.String())
	}

	leak()
	leak()
	m.define(crds, v3)
	m.works("the other group is defined", groupV1, names...)

	m.putV3("clusterinformations", "default", `{"datastoreReady":true}`)
	leak()
	m.fails("both are live", "2 of the API groups")

	m.putV3("clusterinformations", "default", `{"datastoreReady":false}`)
	m.works("the other one is not live yet", groupV1, names[2])

	leak()
	m.migration("Migrating")
	m.fails("data moves", "(phase Migrating)")
	m.migration("WaitingForConflictResolution")
	m.fails("data waits", "(phase WaitingForConflictResolution)")
	m.migration("Pending")
	m.works("data is about to move", groupV1, names[3])

	// Calico locks the old group, copies, and opens the new one.
	leak()
	leak()
	m.must(m.Lock(m.Context()))
	m.copyToV3()
	m.migration("Migrating")
	m.fails("data moves, and the old one is locked", "(phase Migrating)")
	m.migration("Converged")
	m.fails("none is live", "0 of the API groups")
	m.putV3("clusterinformations", "default", `{"datastoreReady":true}`)
	m.works("data has moved", groupV3, names[4:]...)

	// Some day the old definitions go.
	m.copyToV3()
	m.undefine(crds)
	m.migration("Complete")
	m.works("there is the new one only", groupV3, names[4:]...)
	m.putV3("clusterinformations", "default", `{"datastoreReady":false}`)
	m.fails("the new one is locked", "datastoreReady is false")
	if report := m.specs(groupV3, "ipamblocks"); !strings.Contains(fmt.Sprint(report), "web") {
		t.Errorf("%s is not in %v", ip, report)
	}
}

const (
	groupV1 = "crd.projectcalico.org/v1"
	groupV3 = "projectcalico.org/v3"
	moves   = "migration.projectcalico.org/v1beta1"
)

// kinds are the resources that move.
var kinds = map[string]string{"ipamblocks": "IPAMBlock", "ipamhandles": "IPAMHandle", "clusterinformations": "ClusterInformation"}

// A move is a fixture in which data moves from one API group to another.
type move struct{ *fixture }

// undo defines the old resources again and removes the new ones: other tests use
// the same cluster.
func (m move) undo(t *testing.T, crds, v3 string) {
	const patience = time.Minute
	config := m.Cluster.Config
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{crds}, MaxTime: patience}); err != nil {
		t.Error(err)
	}
	if err := envtest.UninstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{v3}, MaxTime: patience}); err != nil {
		t.Error(err)
	}
}

// define defines the resources of the new group, and that of the move.
func (m move) define(from, to string) {
	m.Helper()
	for resource := range kinds {
		text, err := os.ReadFile(filepath.Join(from, "crd.projectcalico.org_"+resource+".yaml"))
		m.must(err)
		var crd map[string]any
		m.must(yaml.Unmarshal(text, &crd))
		crd["metadata"] = map[string]any{"name": resource + ".projectcalico.org"}
		spec := crd["spec"].(map[string]any)
		spec["group"] = "projectcalico.org"
		spec["versions"].([]any)[0].(map[string]any)["name"] = "v3"
		text, err = yaml.Marshal(crd)
		m.must(err)
		m.must(os.WriteFile(filepath.Join(to, resource+".yaml"), text, 0o600))
	}
	m.must(os.WriteFile(filepath.Join(to, "datastoremigrations.yaml"), []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: datastoremigrations.migration.projectcalico.org}
spec:
  group: migration.projectcalico.org
  names: {kind: DatastoreMigration, listKind: DatastoreMigrationList, plural: datastoremigrations, singular: datastoremigration}
  scope: Cluster
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`), 0o600))
	_, err := envtest.InstallCRDs(m.Cluster.Config, envtest.CRDInstallOptions{Paths: []string{to}, ErrorIfPathMissing: true, MaxTime: time.Minute})
	m.must(err)
}

// undefine removes the definitions of the old group, and waits until they are gone.
func (m move) undefine(crds string) {
	m.Helper()
	definitions := m.Cluster.Dynamic.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	files, err := os.ReadDir(crds)
	m.must(err)
	var gone []string
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file.Name(), "crd.projectcalico.org_"), ".yaml") + ".crd.projectcalico.org"
		m.must(definitions.Delete(m.Context(), name, metav1.DeleteOptions{}))
		gone = append(gone, name)
	}
	deadline := time.Now().Add(time.Minute)
	for _, name := range gone {
		for {
			_, err := definitions.Get(m.Context(), name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				break
			}
			m.must(err)
			if time.Now().After(deadline) {
				m.Fatalf("%s is still defined", name)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func (m move) client() rest.Interface { return m.Cluster.Kube.Discovery().RESTClient() }

// putV3 writes an object of the new group.
func (m move) putV3(resource, name, spec string) {
	m.Helper()
	m.put(groupV3, resource, name, fmt.Sprintf(`"kind":%q,"spec":%s`, kinds[resource], spec))
}

// migration writes the object that says how far the move is.
func (m move) migration(phase string) {
	m.Helper()
	m.put(moves, "datastoremigrations", "v1-to-v3", fmt.Sprintf(`"kind":"DatastoreMigration","spec":{"type":"V1ToV3"},"status":{"phase":%q}`, phase))
}

// put writes an object anew.
func (m move) put(group, resource, name, rest string) {
	m.Helper()
	path := "/apis/" + group + "/" + resource
	if err := m.client().Delete().AbsPath(path, name).Do(m.Context()).Error(); err != nil && !apierrors.IsNotFound(err) {
		m.Fatal(err)
	}
	m.must(m.client().Post().AbsPath(path).SetHeader("Content-Type", "application/json").
		Body(fmt.Appendf(nil, `{"apiVersion":%q,"metadata":{"name":%q},%s}`, group, name, rest)).Do(m.Context()).Error())
}

// copyToV3 copies blocks and handles.
func (m move) copyToV3() {
	m.Helper()
	for _, resource := range []string{"ipamblocks", "ipamhandles"} {
		for name, spec := range m.specs(groupV1, resource) {
			m.putV3(resource, name, spec)
		}
	}
}

// specs are the objects of a resource.
func (m move) specs(group, resource string) map[string]string {
	m.Helper()
	raw, err := m.client().Get().AbsPath("/apis/" + group + "/" + resource).Do(m.Context()).Raw()
	if apierrors.IsNotFound(err) {
		return nil
	}
	m.must(err)
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     json.RawMessage
		}
	}
	m.must(json.Unmarshal(raw, &list))
	specs := map[string]string{}
	for _, item := range list.Items {
		specs[item.Metadata.Name] = string(item.Spec)
	}
	return specs
}

// works runs the reaper, which has to release these addresses in the group, with
// their handles, and to touch nothing else.
func (m move) works(when, group string, ips ...string) {
	m.Helper()
	before, versions := m.specs(group, "ipamblocks"), m.versions()
	r := m.mustReap(reap.ExitDone, releaseNow)
	got := lines(r)
	maps.DeleteFunc(got, func(_, line string) bool { return !strings.HasSuffix(line, " released") })
	want := map[string]string{}
	for _, ip := range ips {
		want[ip] = "orphan PodAbsent released"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.Fatalf("%s: released (-want +got):\n%s", when, diff)
	}
	ordinals, _ := released(r)
	for name, spec := range before {
		var b, after map[string]any
		m.must(decode(spec, &b))
		cidr := b["cidr"].(string)
		for _, id := range free(b, ordinals[cidr]) {
			delete(versions, "ipamhandles."+group[:strings.Index(group, "/")]+"/"+id)
		}
		m.must(decode(m.specs(group, "ipamblocks")[name], &after))
		if diff := cmp.Diff(b, after); diff != "" {
			m.Errorf("%s: block %s (-want +got):\n%s", when, name, diff)
		}
		delete(versions, "ipamblocks."+group[:strings.Index(group, "/")]+"/"+name)
	}
	now := m.versions()
	for name := range now {
		if _, is := versions[name]; !is && strings.HasPrefix(name, "ipamblocks.") {
			delete(now, name)
		}
	}
	if diff := cmp.Diff(versions, now); diff != "" {
		m.Errorf("%s: versions of what was not released (-want +got):\n%s", when, diff)
	}
}

// fails runs the reaper, which has to say why and to write nothing.
func (m move) fails(when, why string) {
	m.Helper()
	before := m.versions()
	r := m.mustReap(reap.ExitPartial, releaseNow)
	if b := backendOf(r); b.Status != "failed" || !strings.Contains(b.Message, why) || len(r.Entries) > 0 {
		m.Errorf("%s: the backend is %s: %q, with %v; want it to have failed: %q", when, b.Status, b.Message, r.Entries, why)
	}
	if diff := cmp.Diff(before, m.versions()); diff != "" {
		m.Errorf("%s: versions (-before +after):\n%s", when, diff)
	}
}
