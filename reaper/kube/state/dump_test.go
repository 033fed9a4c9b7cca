package state

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A dump has what a run judges a pod by, what explain says of one that hangs, and no secret.
func TestDumpedPodsAreAndAskForTheSame(t *testing.T) {
	const pod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "web", "finalizers": ["shop/wait"],
		"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30, "annotations": {"secret": "hunter2",
		"cni.projectcalico.org/ipAddrs": "[\"10.0.0.7\"]", "cni.projectcalico.org/ipv4pools": "[\"a\"]", "k8s.v1.cni.cncf.io/networks": "lan"}},
		"spec": {"nodeName": "n1"}, "status": {"phase": "Pending", "startTime": "2026-01-01T00:00:01Z"}}`
	read := func(text string) (census.Pod, report.Asking) {
		var p corev1.Pod
		if err := kube.Decode([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		is := readPod(&p)
		return is, readAsking(&p, is)
	}
	dumped := string(Dumped("", []byte(pod)))
	is, asks := read(pod)
	thenIs, thenAsks := read(dumped)
	if diff := cmp.Diff(is, thenIs) + cmp.Diff(asks, thenAsks); diff != "" || is.Started.IsZero() || strings.Contains(dumped, "hunter2") {
		t.Errorf("(-cluster +dump):\n%s\n%s", diff, dumped)
	}
}

func TestDumpRefusesIncompleteObjects(t *testing.T) {
	for name, tt := range map[string]struct{ data, want string }{
		"a pod without a name": {`{"metadata": {}}`, "item 1: pod: the object has no name"},
		"a pod that is none": {`{"metadata": {"name": "x"}, "spec": []}`,
			"item 1: pod: json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"},
	} {
		_, _, err := Reduce(ipam.Document{Place: "item 1", APIVersion: "v1", Kind: "Pod", Data: []byte(tt.data)})
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}
