package admission_test

import (
	"encoding/base64"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// binary is so much data of a ConfigMap.
func binary(key string, size int) string {
	return `,"binaryData":{"` + key + `":"` + base64.StdEncoding.EncodeToString(make([]byte, size)) + `"}`
}

// The metadata of the ledger and of the lease, and the labels of a journal, are read by
// other programs: an account of ip-reaper does not choose them. A ledger that is
// immutable could never be written again, and no account may delete it.
func TestMemoryKeepsItsMetadata(t *testing.T) {
	f := newFixture(t)
	const owners = `[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"1"}]`
	_, err := f.Dynamic.Resource(resources["configmap"]).Namespace("ip-reaper").Patch(f.Context(), "ip-reaper-ledger", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":["example.com/x"],"ownerReferences":`+owners+`}}`), metav1.PatchOptions{})
	f.must(err)
	const data = `[{"op":"add","path":"/data","value":{"a":"b"}}]`
	named := func(meta, more string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ip-reaper",` + meta + `}` + more + `}`
	}
	f.each(reap.RunAccount, []write{
		{"write a ledger with an owner and a finalizer of the administrator", "", "patch", "configmap: ip-reaper/ip-reaper-ledger", data},
		{"remove the owner of the ledger", "writes", "patch", "configmap: ip-reaper/ip-reaper-ledger", `[{"op":"remove","path":"/metadata/ownerReferences"}]`},
		{"make the ledger immutable", "writes", "patch", "configmap: ip-reaper/ip-reaper-ledger", `[{"op":"add","path":"/immutable","value":true}]`},
		{"create an immutable ledger", "writes", "create", "configmap: ", named(`"name":"ip-reaper-ledger"`, `,"immutable":true`)},
		{"label the ledger", "writes", "patch", "configmap: ip-reaper/ip-reaper-ledger", `[{"op":"add","path":"/metadata/labels","value":{"grafana_dashboard":"1"}}]`},
		{"annotate the ledger", "writes", "patch", "configmap: ip-reaper/ip-reaper-ledger", `[{"op":"add","path":"/metadata/annotations","value":{"reflector.v1.k8s.emberstack.com/reflection-auto-enabled":"true"}}]`},
		{"create a labelled ledger", "writes", "create", "configmap: ", named(`"name":"ip-reaper-ledger","labels":{"grafana_dashboard":"1"}`, ``)},
		{"create a journal as the program does", "", "create", "configmap: ", named(`"name":"ip-reaper-journal-a-1-1","labels":{"ip-reaper/journal":"true","ip-reaper/run":"a"},"annotations":{"ip-reaper/started-at":"2026"}`, `,"immutable":true`)},
		{"create a journal with a label of another program", "writes", "create", "configmap: ", named(`"name":"ip-reaper-journal-a-1-1","labels":{"grafana_dashboard":"1"}`, ``)},
		{"create a journal with an annotation of another program", "writes", "create", "configmap: ", named(`"name":"ip-reaper-journal-a-1-1","annotations":{"replicator.v1.mittwald.de/replicate-to":".*"}`, ``)},
		{"create a journal with a long annotation", "writes", "create", "configmap: ", named(`"name":"ip-reaper-journal-a-1-1","annotations":{"ip-reaper/started-at":"`+strings.Repeat("2", 65)+`"}`, ``)},
		{"create a journal as large as can be", "", "create", "configmap: ", named(`"name":"ip-reaper-journal-a-1-1"`, binary("journal.json.gz", journal.MaxPart+300))},
		{"create a larger journal", "writes", "create", "configmap: ", named(`"name":"ip-reaper-journal-a-1-1"`, binary("journal.json.gz", journal.MaxPart+2<<10))},
		{"create a journal with other data", "writes", "create", "configmap: ", named(`"name":"ip-reaper-journal-a-1-1"`, binary("x", 1))},
		{"create a journal with text", "writes", "create", "configmap: ", named(`"name":"ip-reaper-journal-a-1-1"`, `,"data":{"journal.json.gz":"x"}`)},
		{"create a journal that is a ledger, too", "writes", "create", "configmap: ",
			named(`"name":"ip-reaper-journal-a-1-1"`, `,"binaryData":{"journal.json.gz":"","ledger.gz":""}`)},
		{"create a journal by generateName", "", "create", "configmap: ", named(`"generateName":"ip-reaper-journal-"`, ``)},
		{"create a ledger by generateName", "writes", "create", "configmap: ", named(`"generateName":"ip-reaper-ledger-"`, ``)},
		{"create any by generateName", "writes", "create", "configmap: ", named(`"generateName":"x-"`, ``)},
		{"create a lease by generateName", "writes", "create", "lease: ", strings.Replace(lease("ip-reaper", "x"), `"name":"x"`, `"generateName":"ip-reaper"`, 1)},
		{"hold the lease for half a minute", "", "patch", "lease: ip-reaper/ip-reaper", `[{"op":"add","path":"/spec","value":{"holderIdentity":"a","leaseDurationSeconds":30}}]`},
		{"hold the lease for 68 years", "writes", "patch", "lease: ip-reaper/ip-reaper", `[{"op":"add","path":"/spec","value":{"holderIdentity":"a","leaseDurationSeconds":2147483647}}]`},
		{"hold the lease by a long name", "writes", "patch", "lease: ip-reaper/ip-reaper", `[{"op":"add","path":"/spec","value":{"holderIdentity":"` + strings.Repeat("a", 1024) + `"}}]`},
		{"create a labelled lease", "writes", "create", "lease: ", strings.Replace(lease("ip-reaper", "ip-reaper"), `"name"`, `"labels":{"x":"y"},"name"`, 1)},
		{"create an annotated lease", "writes", "create", "lease: ", strings.Replace(lease("ip-reaper", "ip-reaper"), `"name"`, `"annotations":{"x":"y"},"name"`, 1)},
		{"label the lease", "writes", "patch", "lease: ip-reaper/ip-reaper", `[{"op":"add","path":"/metadata/labels","value":{"x":"y"}}]`},
	})
}
