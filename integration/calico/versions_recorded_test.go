package calico_test

import (
	"strings"
	"testing"
)

// The API groups of Calico's custom resources.
const (
	groupV1 = "crd.projectcalico.org"
	groupV3 = "projectcalico.org"
)

// A form is what a version of Calico stores in one of the datastores.
type form struct {
	name  string            // of the folder in testdata
	alive string            // the folder with pods and nodes
	group string            // of the custom resources; empty in etcd
	whole bool              // all handles are there, and none is empty
	aged  bool              // the nodes are as old as their addresses
	alone bool              // the policy says that no other cluster has the store
	clone bool              // a/othernode runs on node-2, as it was recorded
	want  map[string]string // verdict, reason and outcome, by owner and address
}

// recorded returns what was recorded of the real programs of one version.
func recorded(name, group string) form {
	return form{name: name, alive: name, group: group, whole: true, want: verdicts(group, cast{
		"100.112.209.128", "100.112.209.129", "fd00:10::94fa:7820:5b81:7500", "100.112.209.130",
		"100.112.209.131", "fd00:10::94fa:7820:5b81:7501", "100.112.209.132", "100.112.209.133", "100.112.209.134",
		"100.112.209.135", "100.112.209.136", "100.112.209.137", "100.112.209.138", "100.112.209.139",
		"100.112.209.140", "100.112.209.0", "100.112.209.64",
	})}
}

// A cast is the addresses of the pods of a form, in the order of verdicts.
type cast [17]string

// verdicts are those that README.md in testdata explains. In etcd, node-3 still has its Calico Node.
func verdicts(group string, c cast) map[string]string {
	onGoneNode := "orphan PodAbsent released"
	if group == "" {
		onGoneNode = "held NodeForeign kept"
	}
	all := map[string]string{}
	for i, v := range [len(c)][2]string{
		{"a/gone", "orphan PodAbsent released"},
		{"a/gone6", "orphan PodAbsent released"},
		{"a/gone6", "orphan PodAbsent released"},
		{"a/live", "inUse PodPresent kept"},
		{"a/live6", "inUse PodPresent kept"},
		{"a/live6", "inUse PodPresent kept"},
		{"a/pending", "inUse PodPresent kept"},
		{"a/again", "suspected SandboxReplaced kept"}, // the older one: an ADD may take four minutes
		{"a/again", "inUse PodPresent kept"},
		{"a/forger", "inUse PodPresent kept"},
		{"a/othernode", "inUse PodPresent kept"},
		{"excluded/gone", "held OutOfScope kept"},
		{"no pod", "held NotPodOwned kept"}, // a tunnel
		{"a/done", "held PodFinished kept"},
		{"a/shown", "inUse AddressInUse kept"},
		{"a/away", "held NodeUnreachable kept"},
		{"a/nodegone", onGoneNode},
	} {
		all[v[0]+" "+c[i]] = v[1]
	}
	return all
}

// What Calico 3.30 to 3.33 stored gets the verdicts that it has to.
func TestRecordedFormsGetTheirVerdicts(t *testing.T) {
	proveAll(t,
		recorded("calico-3.30.7-kubernetes", groupV1),
		recorded("calico-3.32.1-kubernetes", groupV1),
		recorded("calico-3.33-kubernetes", groupV1),
		recorded("calico-3.32.1-native", groupV3),
		recorded("calico-3.30.7-etcdv3", ""),
		recorded("calico-3.32.1-etcdv3", ""),
		recorded("calico-3.33-etcdv3", ""),
	)
}

// By its own status, a/othernode runs on node-2, and Calico has its address on node-1. So node-2, which is
// not ready, may have any address of node-1 (promise 1).
func TestAddressesOfANodeStayWhileItsNameMayMeanAnother(t *testing.T) {
	forms := []form{recorded("calico-3.33-kubernetes", groupV1), recorded("calico-3.33-etcdv3", "")}
	for i, f := range forms {
		forms[i].clone = true
		for entry, verdict := range f.want {
			switch {
			case entry == "a/nodegone 100.112.209.64": // on node-3
			case strings.HasSuffix(verdict, "released"), strings.HasPrefix(verdict, "suspected"), entry == "excluded/gone 100.112.209.137":
				f.want[entry] = "held NodeUnreachable kept"
			}
		}
	}
	proveAll(t, forms...)
}

// By its own status, a/othernode is not on the node that the store names. So the store may
// call nodes by other names, and the gone node-3 may be node-2, which is not ready:
// the address stays. The other tests create the nodes anew, and what is older than a node was
// never on it (promise 2).
func TestAddressOfAGoneNodeStaysWhileAnotherNodeMayBeMeant(t *testing.T) {
	forms := []form{recorded("calico-3.33-kubernetes", groupV1), recorded("calico-3.33-etcdv3", "")}
	for i, f := range forms {
		forms[i].aged, forms[i].alone = true, true
		f.want["a/nodegone 100.112.209.64"] = "held NodeUnreachable kept"
	}
	proveAll(t, forms...)
}
