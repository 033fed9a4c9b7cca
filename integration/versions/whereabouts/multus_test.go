package whereabouts_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// The name of the annotation that Multus wrote beside cluster.NetworkStatusAnnotation until 3.9.
const networksStatus = "k8s.v1.cni.cncf.io/networks-status"

// A pod shows its addresses as a version of Multus writes them, in the default network and
// in others, by an annotation alone. Whereabouts names pods that are gone as their owners. What is
// shown is in use (promise 1). A gateway, and what is not shown, goes.
func TestAddressShownByEachMultusStays(t *testing.T) {
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, version, key string }{
		{"3.4", "3.4", cluster.NetworkStatusAnnotation},
		{"3.4, by the older name", "3.4", networksStatus},
		{"3.9", "3.9", cluster.NetworkStatusAnnotation},
		{"4.0", "4.0", cluster.NetworkStatusAnnotation},
		{"4.2", "4.2", cluster.NetworkStatusAnnotation},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, "..", "reaper", "kube", "state", "testdata", "multus", tt.version+".json"))
			if err != nil {
				t.Fatal(err)
			}
			f := newFixture(t)
			f.pod("other", cluster.Annotation(tt.key, string(text)))
			f.load(pools,
				pool("10.1.0.0-24", "10.1.0.0/24", `{"1":`+ofPod(one, "a/gone")+`,"2":`+ofPod(one, "a/gone")+`}`),
				pool("10.244.0.0-16", "10.244.0.0/16", `{"257":`+ofPod(one, "a/gone")+`,"261":`+ofPod(one, "a/gone")+`}`),
				pool("fd00-1---64", "fd00:1::/64", `{"1":`+ofPod(one, "a/gone")+`}`))
			f.play("", verdicts{
				"inUse AddressInUse kept": {"10.1.0.0-24 10.1.0.1", "10.244.0.0-16 10.244.1.5", "fd00-1---64 fd00:1::1"},
				released:                  {"10.1.0.0-24 10.1.0.2", "10.244.0.0-16 10.244.1.1"},
			})
		})
	}
}

// Of a result without an interface, Multus 4.2 writes no entry. The pod exists, and so it keeps
// the address that it does not show. An entry that names a sandbox only may be of that pod, and
// is held also if the policy releases such entries (promise 2).
func TestAddressThatMultusLeavesOutStays(t *testing.T) {
	f := newFixture(t)
	f.pod("live", cluster.Annotation("k8s.v1.cni.cncf.io/networks", "lan"), cluster.Networks())
	f.load(pools, pool("10.1.0.0-24", "10.1.0.0/24", `{"1":`+ofPod(one, "a/live")+`,"2":`+ofPod(two, "a/gone")+`,"3":`+ofSandbox(three)+`}`))
	f.play("pods: {unnamed: release}\n", verdicts{
		kept: {"10.1.0.0-24 10.1.0.1"}, released: {"10.1.0.0-24 10.1.0.2"}, "held OwnerUnknown kept": {"10.1.0.0-24 10.1.0.3"},
	})
}
