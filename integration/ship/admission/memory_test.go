package admission_test

import (
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/admission"
)

// controller is the name by which ip-reaper reports events.
const controller = "ip-reaper.github.io/ip-reaper"

// Every account of ip-reaper writes its ledger, journals and lease in its own namespace, and those
// that release write events, too. None writes another object of these kinds.
func TestMemoryIsTheirOwn(t *testing.T) {
	f := newFixture(t)
	const data = `[{"op":"add","path":"/data","value":{"a":"b"}}]`
	const forever = `[{"op":"add","path":"/metadata/finalizers","value":["example.com/x"]}]`
	const owned = `[{"op":"add","path":"/metadata/ownerReferences","value":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"1"}]}]`
	const hold = `[{"op":"add","path":"/spec","value":{"holderIdentity":"a"}}]`
	writes := []write{
		{"write the ledger", "", "patch", "configmap: ip-reaper/ip-reaper-ledger", data},
		{"create a part of the ledger", "", "create", "configmap: ", configMap("ip-reaper", "ip-reaper-ledger-part-b-1")},
		{"change a part of the ledger", "configmaps", "patch", "configmap: ip-reaper/ip-reaper-ledger-part-a-1", data},
		{"delete a part of the ledger", "", "delete", "configmap: ip-reaper/ip-reaper-ledger-part-a-1", ``},
		{"create a journal", "", "create", "configmap: ", configMap("ip-reaper", "ip-reaper-journal-20261122-070000-abcdef-1-1")},
		{"delete a journal", "", "delete", "configmap: ip-reaper/ip-reaper-journal-1-1-1", ``},
		{"change a journal", "configmaps", "patch", "configmap: ip-reaper/ip-reaper-journal-1-1-1", data},
		{"delete the ledger", "configmaps", "delete", "configmap: ip-reaper/ip-reaper-ledger", ``},
		{"delete all ConfigMaps", "configmaps", "collect", "configmap: ip-reaper/", ``},
		{"keep the ledger for ever", "configmaps", "patch", "configmap: ip-reaper/ip-reaper-ledger", forever},
		{"give the ledger an owner", "configmaps", "patch", "configmap: ip-reaper/ip-reaper-ledger", owned},
		{"change the policy", "configmaps", "patch", "configmap: ip-reaper/ip-reaper-policy", data},
		{"delete the policy", "configmaps", "delete", "configmap: ip-reaper/ip-reaper-policy", ``},
		{"create a policy", "configmaps", "create", "configmap: ", configMap("ip-reaper", "ip-reaper-policy-2")},
		{"create a ConfigMap that begins as the ledger", "configmaps", "create", "configmap: ", configMap("ip-reaper", "ip-reaper-ledger-2")},
		{"create any ConfigMap", "configmaps", "create", "configmap: ", configMap("ip-reaper", "kube-root-ca.crt")},
		{"write a ledger elsewhere", "configmaps", "patch", "configmap: kube-system/ip-reaper-ledger", data},
		{"create a journal elsewhere", "configmaps", "create", "configmap: ", configMap("kube-system", "ip-reaper-journal-2-1-1")},
		{"delete a journal elsewhere", "configmaps", "delete", "configmap: kube-system/ip-reaper-journal-1-1-1", ``},

		{"hold the lease", "", "patch", "lease: ip-reaper/ip-reaper", hold},
		{"hold another lease", "leases", "patch", "lease: ip-reaper/other", hold},
		{"hold a lease elsewhere", "leases", "patch", "lease: kube-system/ip-reaper", hold},
		{"create another lease", "leases", "create", "lease: ", lease("ip-reaper", "kube-scheduler")},
		{"create a lease elsewhere", "leases", "create", "lease: ", lease("default", "ip-reaper")},
		{"keep the lease for ever", "leases", "patch", "lease: ip-reaper/ip-reaper", forever},

		{"create an event", "", "create", "event: ", event("ip-reaper-abc", controller)},
		{"create an event of another name", "events", "create", "event: ", event("node-1.abc", controller)},
		{"create an event of another controller", "events", "create", "event: ", event("ip-reaper-abc", "kubelet.example.com/kubelet")},
	}
	f.releasing(writes...)
	f.each(admission.Restore, withoutEvents(writes))
	for _, account := range []string{admission.Reaper, admission.Outage, admission.Restore} {
		f.each(account, []write{
			{"delete the lease", "other", "delete", "lease: ip-reaper/ip-reaper", ``},
			{"create an event of the core group", "other", "create", "core event: ", `{"apiVersion":"v1","kind":"Event",
				"metadata":{"namespace":"kube-system","name":"ip-reaper-abc"},"reason":"a","type":"Normal",
				"involvedObject":{"kind":"Pod","namespace":"kube-system","name":"one"},"reportingComponent":"` + controller + `","reportingInstance":"a"}`},
		})
	}
}

// withoutEvents are the writes as they are refused to the account that restores: it creates no
// event. If two policies refuse, either may be named.
func withoutEvents(writes []write) []write {
	var all []write
	for _, w := range writes {
		if strings.HasPrefix(w.target, "event") {
			w.by = strings.TrimPrefix(w.by+"|other", "|")
		}
		all = append(all, w)
	}
	return all
}
