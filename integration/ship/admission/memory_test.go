package admission_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Every account of ip-reaper writes its ledger, journals and lease in its own namespace. None
// writes another object of these kinds, or an event.
func TestMemoryIsTheirOwn(t *testing.T) {
	f := newFixture(t)
	const data = `[{"op":"add","path":"/data","value":{"a":"b"}}]`
	const forever = `[{"op":"add","path":"/metadata/finalizers","value":["example.com/x"]}]`
	const owned = `[{"op":"add","path":"/metadata/ownerReferences","value":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"1"}]}]`
	const hold = `[{"op":"add","path":"/spec","value":{"holderIdentity":"a"}}]`
	writes := []write{
		{"write the ledger", "", "patch", "configmap: ip-reaper/ip-reaper-ledger", data},
		{"create a journal", "", "create", "configmap: ", configMap("ip-reaper", "ip-reaper-journal-20261122-070000-abcdef-1-1")},
		{"delete a journal", "", "delete", "configmap: ip-reaper/ip-reaper-journal-1-1-1", ``},
		{"change a journal", "writes", "patch", "configmap: ip-reaper/ip-reaper-journal-1-1-1", data},
		{"delete the ledger", "writes", "delete", "configmap: ip-reaper/ip-reaper-ledger", ``},
		{"delete all ConfigMaps", "writes", "collect", "configmap: ip-reaper/", ``},
		{"keep the ledger for ever", "writes", "patch", "configmap: ip-reaper/ip-reaper-ledger", forever},
		{"give the ledger an owner", "writes", "patch", "configmap: ip-reaper/ip-reaper-ledger", owned},
		{"change the policy", "writes", "patch", "configmap: ip-reaper/ip-reaper-policy", data},
		{"delete the policy", "writes", "delete", "configmap: ip-reaper/ip-reaper-policy", ``},
		{"create a policy", "writes", "create", "configmap: ", configMap("ip-reaper", "ip-reaper-policy-2")},
		{"create a ConfigMap that begins as the ledger", "writes", "create", "configmap: ", configMap("ip-reaper", "ip-reaper-ledger-2")},
		{"create any ConfigMap", "writes", "create", "configmap: ", configMap("ip-reaper", "kube-root-ca.crt")},
		{"write a ledger elsewhere", "writes", "patch", "configmap: kube-system/ip-reaper-ledger", data},
		{"create a journal elsewhere", "writes", "create", "configmap: ", configMap("kube-system", "ip-reaper-journal-2-1-1")},
		{"delete a journal elsewhere", "writes", "delete", "configmap: kube-system/ip-reaper-journal-1-1-1", ``},

		{"hold the lease", "", "patch", "lease: ip-reaper/ip-reaper", hold},
		{"hold another lease", "writes", "patch", "lease: ip-reaper/other", hold},
		{"hold a lease elsewhere", "writes", "patch", "lease: kube-system/ip-reaper", hold},
		{"create another lease", "writes", "create", "lease: ", lease("ip-reaper", "kube-scheduler")},
		{"create a lease elsewhere", "writes", "create", "lease: ", lease("default", "ip-reaper")},
		{"keep the lease for ever", "writes", "patch", "lease: ip-reaper/ip-reaper", forever},
	}
	f.releasing(writes...)
	f.each(reap.RestoreAccount, writes)
	for _, account := range []string{reap.RunAccount, reap.OutageAccount, reap.RestoreAccount} {
		f.each(account, []write{
			{"delete the lease", "other", "delete", "lease: ip-reaper/ip-reaper", ``},
			{"create an event", "other", "create", "event: ", `{"apiVersion":"events.k8s.io/v1","kind":"Event",
				"metadata":{"namespace":"kube-system","name":"ip-reaper-abc"},"eventTime":"2026-11-22T07:00:00.000001Z",
				"reportingController":"ip-reaper.github.io/ip-reaper","reportingInstance":"a","action":"a","reason":"a","type":"Normal",
				"regarding":{"kind":"Pod","namespace":"kube-system","name":"one"}}`},
			{"create an event of the core group", "other", "create", "core event: ", `{"apiVersion":"v1","kind":"Event",
				"metadata":{"namespace":"kube-system","name":"ip-reaper-abc"},"reason":"a","type":"Normal",
				"involvedObject":{"kind":"Pod","namespace":"kube-system","name":"one"}}`},
		})
	}
}
