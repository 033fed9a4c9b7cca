package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// lookAt runs inspect with a standard input.
func lookAt(ctx context.Context, in io.Reader, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	w := streams(&out, &errs)
	w.stdin = in
	code = run(ctx, w, append([]string{"inspect"}, args...))
	return code, out.String(), errs.String()
}

// stores are lists and objects as an API server sends them.
var stores = map[string]string{
	"ippools": `{"kind": "IPPoolList", "apiVersion": "whereabouts.cni.cncf.io/v1alpha1", "metadata": {"resourceVersion": "9"}, "items": [
		{"metadata": {"namespace": "kube-system", "name": "10.1.0.0-24", "uid": "u1", "resourceVersion": "7"}, "spec": {"range": "10.1.0.0/24", "allocations": {
			"1": {"id": "c1", "ifname": "net1", "podref": "default/alive"},
			"2": {"id": "c2", "ifname": "net1", "podref": "default/gone"},
			"3": {"id": "c3", "ifname": "net1", "podref": "default/db-0"},
			"x": {"id": "c4"}}}}]}`,
	"overlappingrangeipreservations": `{"kind": "OverlappingRangeIPReservationList", "apiVersion": "whereabouts.cni.cncf.io/v1alpha1", "metadata": {"resourceVersion": "9"}, "items": [
		{"metadata": {"namespace": "kube-system", "name": "10.1.0.2", "uid": "u2", "resourceVersion": "8", "creationTimestamp": "2026-03-01T12:00:00Z"},
			"spec": {"podref": "default/gone", "ifname": "net1"}}]}`,
	"ipamblocks": `{"kind": "IPAMBlockList", "apiVersion": "crd.projectcalico.org/v1", "metadata": {"resourceVersion": "9"}, "items": [
		{"metadata": {"name": "10-2-0-0-30", "uid": "u3", "resourceVersion": "5"}, "spec": {"cidr": "10.2.0.0/30", "affinity": "host:node-a",
			"allocations": [0, 1, 1, null], "unallocated": [3], "deleted": false, "sequenceNumber": 1800000000000000007,
			"sequenceNumberForAllocation": {"0": 1800000000000000001, "1": 1800000000000000002, "2": 1800000000000000003}, "attributes": [
			{"handle_id": "net.aa", "secondary": {"namespace": "default", "node": "node-a", "pod": "alive"}},
			{"handle_id": "net.bb", "secondary": {"namespace": "default", "node": "node-a", "pod": "gone"}}]}}]}`,
	"ipamhandles": `{"kind": "IPAMHandleList", "apiVersion": "crd.projectcalico.org/v1", "metadata": {"resourceVersion": "9"}, "items": [
		{"metadata": {"name": "net.aa", "uid": "ha"}, "spec": {"handleID": "net.aa", "block": {"10.2.0.0/30": 1}}},
		{"metadata": {"name": "net.bb", "uid": "hb"}, "spec": {"handleID": "net.bb", "block": {"10.2.0.0/30": 2}}}]}`,
	"default":                          `{"metadata": {"name": "default"}, "spec": {"datastoreReady": true}}`,
	"ipamblocks.crd.projectcalico.org": `{"metadata": {"name": "x"}, "spec": {"versions": [{"name": "v1", "served": true, "storage": true}]}}`,
}

// beside are the pods, StatefulSets and nodes of the same cluster.
var beside = map[string]string{
	"pods": `{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": [
		{"metadata": {"namespace": "default", "name": "alive"}, "spec": {"nodeName": "node-a"}, "status": {"phase": "Running", "podIP": "10.2.0.0"}}]}`,
	"statefulsets": `{"kind": "StatefulSetList", "apiVersion": "apps/v1", "metadata": {"resourceVersion": "9"}, "items": [
		{"metadata": {"namespace": "default", "name": "db"}, "spec": {"replicas": 1}}]}`,
	"nodes": `{"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": [
		{"metadata": {"name": "node-a"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}`,
}

// printed are the fields of a report that are compared. The times differ.
type printed struct {
	Summary  report.Counts
	Backends []map[string]any
	Pools    []map[string]any
	Entries  []map[string]any
}

func parse(t *testing.T, report string) printed {
	t.Helper()
	var p printed
	if err := json.Unmarshal([]byte(report), &p); err != nil {
		t.Fatalf("%v in %s", err, report)
	}
	for _, e := range p.Entries {
		delete(e, "firstSeen")
		delete(e, "due")
	}
	return p
}

func TestInspectStopsWaitingForStdinWhenInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	in, keepOpen := io.Pipe()
	t.Cleanup(func() { _ = keepOpen.Close() })
	go func() {
		_, _ = io.WriteString(keepOpen, `{"kind": "PodList", "items": [`)
		interrupt()
	}()
	code, stdout, _ := lookAt(ctx, in, "-")
	if code != exitInterrupted || stdout != "" {
		t.Errorf("exit code %d, stdout %q, want %d and nothing", code, stdout, exitInterrupted)
	}
}
