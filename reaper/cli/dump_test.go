package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
)

// Inspecting a dump gives the result of a dry run, at any time, and the dump has no secret of a pod.
func TestDumpIsInspectedAsTheClusterWas(t *testing.T) {
	s, args := newFakeAPI(t, stores)
	lists := map[string]string{
		"pods": strings.Replace(beside["pods"], `"nodeName": "node-a"`, `"nodeName": "node-a", "containers": [{"env": [{"name": "TOKEN", "value": "hunter2"}]}]`, 1),
		"statefulsets": strings.Replace(beside["statefulsets"], `"replicas": 1`,
			`"replicas": 1, "template": {"spec": {"containers": [{"env": [{"name": "TOKEN", "value": "hunter2"}]}]}}`, 1),
		"nodes":          beside["nodes"],
		"ipreservations": `{"kind": "IPReservationList", "apiVersion": "crd.projectcalico.org/v1", "metadata": {"resourceVersion": "9"}, "items": []}`,
	}
	memory := ledger.NewBuilder(ledger.Ledger{}.Salted())
	memory.Store("calico", "guid")
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, _ = zip.Write(memory.Ledger().WithRun(ledger.Run{ID: "run-1", By: "jane"}, nil).Encode())
	_ = zip.Close()
	lists[state.LedgerName] = fmt.Sprintf(`{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": %q}, "binaryData": {"ledger.gz": %q}}`,
		state.LedgerName, base64.StdEncoding.EncodeToString(zipped.Bytes()))
	for name, list := range lists {
		if err := os.WriteFile(filepath.Join(s.dir, name+".json"), []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	policy := written(t, "policy.yaml", []byte("apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\ngracePeriod: 0\n"))
	more := []string{"--policy", policy, "--all", "-o", "json"}
	code, live, stderr := start(t.Context(), false, append(append(args, "--dry-run"), more...))
	if code != exitDone {
		t.Fatalf("exit code %d, stderr:\n%s", code, stderr)
	}
	code, dumped, stderr := start(t.Context(), false, append([]string{"dump", "--policy", policy}, args[:4]...))
	if code != exitDone || strings.Contains(dumped, "hunter2") || s.writes.Load() != 0 {
		t.Fatalf("exit code %d, %d writes, stderr:\n%s\n%s", code, s.writes.Load(), stderr, dumped)
	}
	code, report, stderr := lookAt(t.Context(), strings.NewReader(dumped), append(more, "-")...)
	if code != exitDone {
		t.Fatalf("exit code %d, stderr:\n%s", code, stderr)
	}
	if diff := cmp.Diff(parse(t, live), parse(t, report)); diff != "" {
		t.Errorf("offline (-dry run +inspect):\n%s", diff)
	}
	_, again, _ := lookAt(t.Context(), strings.NewReader(dumped), "-")
	_, once, _ := lookAt(t.Context(), strings.NewReader(dumped), "-")
	if again != once || strings.Contains(once, "the files do not list all") || strings.Contains(once, "files without a ledger") || !strings.Contains(once, ": 0 due now, ") {
		t.Errorf("%s\nand again:\n%s", once, again)
	}
}

// Promise 2. Only a list that the API server does not have is absent from a dump. One that was refused may be there.
func TestDumpSaysWhyAListIsNotInIt(t *testing.T) {
	const attachments = "network-attachment-definitions"
	lists := maps.Clone(stores)
	maps.Copy(lists, beside)
	lists[attachments] = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no right"}`
	_, args := newFakeAPI(t, lists)
	code, dumped, stderr := start(t.Context(), false, append([]string{"dump"}, args[:4]...))
	if code != exitDone {
		t.Fatalf("exit code %d, stderr:\n%s", code, stderr)
	}
	want := map[string]string{
		attachments + ".k8s.cni.cncf.io":         "unread",
		"nodeslicepools.whereabouts.cni.cncf.io": "absent",
		"ipreservations.crd.projectcalico.org":   "absent",
		"ipamconfigs.crd.projectcalico.org":      "absent",
		"blockaffinities.crd.projectcalico.org":  "absent",
	}
	text := strings.Split(strings.TrimSpace(dumped), "\n")
	var last struct{ Missing map[string]string }
	if err := json.Unmarshal([]byte(text[len(text)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, last.Missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	_, report, _ := lookAt(t.Context(), strings.NewReader(dumped), "-")
	if !strings.Contains(report, "the usage of some networks is unknown: list network-attachment-definitions.k8s.cni.cncf.io: the dump could not read it\n") {
		t.Errorf("%s", report)
	}
}

// A dump that failed says so, and what is not known without the missing list is not guessed.
func TestPartialDumpSaysWhatItFailedWith(t *testing.T) {
	dump := `{"apiVersion": "ip-reaper/v1alpha1", "kind": "Dump", "time": "2026-03-01T12:00:00Z", "error": "calico: forbidden"}`
	_, report, _ := lookAt(t.Context(), strings.NewReader(stores["ipamblocks"]+beside["pods"]+beside["nodes"]+dump), "-", "--all")
	for _, want := range []string{
		"warning: the dump is not whole: calico: forbidden\n",
		"10.2.0.0/30  10.2.0.0/30  unknown  3     2       2           unknown  unknown\n",
		"warning: Calico's IPReservations: which addresses are reserved, and so how full networks are, is unknown: the files do not list all of them\n",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("no %q in:\n%s", want, report)
		}
	}
}

// The ledger of a dump is of its own time: with more files, that the pods were listed last is assumed. One
// that cannot be read is no reason to delete that of the cluster.
func TestLedgerOfADumpSaysNothingOfOtherFiles(t *testing.T) {
	memory := ledger.NewBuilder(ledger.Ledger{}.Salted())
	memory.Store("calico", "guid")
	dumpOf := func(ledger []byte) string {
		return fmt.Sprintf(`{"apiVersion": "ip-reaper/v1alpha1", "kind": "Dump", "time": "2026-03-01T12:00:00Z", "ledger": %q}`,
			base64.StdEncoding.EncodeToString(ledger))
	}
	lists, known := stores["ipamblocks"]+beside["nodes"], dumpOf(memory.Ledger().Encode())
	for _, tt := range []struct {
		name  string
		dump  string
		files []string
		want  string // of the warning
	}{
		{"one file", lists + beside["pods"] + known, []string{"-"}, ""},
		{"two files", lists + known, []string{"-", written(t, "pods.json", []byte(beside["pods"]))}, "warning: the dump is not the only file: this assumes that the pods were listed last\n"},
	} {
		_, report, _ := lookAt(t.Context(), strings.NewReader(tt.dump), tt.files...)
		if strings.Contains(report, "this assumes") != (tt.want != "") || !strings.HasPrefix(report, tt.want) {
			t.Errorf("%s: no %q in:\n%s", tt.name, tt.want, report)
		}
	}
	code, _, stderr := lookAt(t.Context(), strings.NewReader(lists+dumpOf(ledgertest.Sum([]byte{255}))), "-")
	if code != exitUsage || strings.Contains(stderr, "delete") || !strings.Contains(stderr, "the ledger in the dump cannot be read: ") {
		t.Errorf("exit code %d, stderr:\n%s", code, stderr)
	}
}
