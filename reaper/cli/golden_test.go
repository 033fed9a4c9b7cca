package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

var update = flag.Bool("update", false, "write the golden reports")

// TestReportsAreGolden inspects every dumped state and compares all that its report says about each
// allocation: the states after public reports, what the real Calico and Whereabouts of several
// versions stored, and generated clusters. The numbers of rules are left out.
func TestReportsAreGolden(t *testing.T) {
	for _, dir := range goldenStates(t) {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			got := goldenReport(t, dir)
			golden := filepath.Join("testdata", "golden", "reports", name)
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
				t.Errorf("the report (-want +got):\n%s", diff)
			}
		})
	}
}

// goldenStates are the folders of all states.
func goldenStates(t *testing.T) (dirs []string) {
	t.Helper()
	for _, pattern := range []string{
		"testdata/golden/*-*",
		"../../integration/calico/testdata/*-*",
		"../../backends/whereabouts/testdata/[0-9]*",
	} {
		dirs = append(dirs, glob(t, pattern)...)
	}
	return dirs
}

// glob returns what matches a pattern, at least one.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	some, err := filepath.Glob(pattern)
	if err != nil || len(some) == 0 {
		t.Fatalf("%s matches nothing: %v", pattern, err)
	}
	return some
}

// alivePods are the files with the pods and the nodes of a state. The states that were written by
// hand share them.
func alivePods(t *testing.T, dir string) []string {
	t.Helper()
	if name := filepath.Base(dir); strings.HasPrefix(name, "hand-") {
		dir = filepath.Join(filepath.Dir(dir), "hand")
	}
	alive := glob(t, filepath.Join(dir, "pods.*"))
	if nodes := filepath.Join(dir, "nodes.json"); exists(nodes) {
		alive = append(alive, nodes)
	}
	return alive
}

// exists reports whether there is a file.
func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// joined returns a file with the documents of several files. Lists that were recorded name their
// kind after their items, which kubectl never does: each of these items gets its kind.
func joined(t *testing.T, files []string) string {
	t.Helper()
	var all []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			APIVersion, Kind string
			Items            []map[string]any
		}
		if json.Unmarshal(text, &list) == nil && list.Kind != "List" && len(list.Items) > 0 {
			for _, item := range list.Items {
				item["apiVersion"], item["kind"] = list.APIVersion, strings.TrimSuffix(list.Kind, "List")
			}
			if text, err = json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": list.Items}); err != nil {
				t.Fatal(err)
			}
		}
		all = append(append(all, "\n---\n"...), text...)
	}
	all = append(append(all, "\n---\n"...), strings.ReplaceAll(endOfDump, "\n", "\n---\n")...)
	return written(t, "state.yaml", all)
}

// endOfDump ends a dump of a cluster that has none of the lists which are not in the dump, nor other nodes and
// StatefulSets.
const endOfDump = `{"apiVersion": "v1", "kind": "NodeList", "items": []}
{"apiVersion": "apps/v1", "kind": "StatefulSetList", "items": []}
{"apiVersion": "ip-reaper/v1alpha1", "kind": "Dump", "missing": {"ipreservations.crd.projectcalico.org": "absent", "network-attachment-definitions.k8s.cni.cncf.io": "absent",` +
	` "ippools.whereabouts.cni.cncf.io": "absent", "nodeslicepools.whereabouts.cni.cncf.io": "absent", "overlappingrangeipreservations.whereabouts.cni.cncf.io": "absent"}}`

// written writes a file of the test.
func written(t *testing.T, name string, text []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// goldenReport returns the report on a state, with one line for each allocation.
func goldenReport(t *testing.T, dir string) []byte {
	t.Helper()
	args := []string{"inspect", "--all", "-o", "json"}
	policy, alive := "testdata/golden/policy.yaml", alivePods(t, dir)
	for _, file := range glob(t, filepath.Join(dir, "*")) {
		switch name := filepath.Base(file); {
		case strings.HasPrefix(name, "policy."):
			policy = file
		case name == "etcd.json":
			args = append(args, etcdctl(t, file))
		case !slices.Contains(alive, file):
			args = append(args, joined(t, []string{file}))
		}
	}
	args = append(args, "--policy="+policy, joined(t, alive))
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), streams(&stdout, &stderr), args)
	var report map[string]any
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatalf("exit code %d, %v; stderr:\n%s", code, err, stderr.String())
	}
	if err := reapertest.Valid("../..", stdout.Bytes()); err != nil {
		t.Error(err)
	}
	entries, _ := report["entries"].([]any)
	if len(entries) == 0 {
		t.Fatalf("the report has no entries; stderr:\n%s", stderr.String())
	}
	delete(report, "entries")
	var text bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(report)) {
		fmt.Fprintf(&text, "%s: %s\n", key, stableJSON(t, report[key]))
	}
	for _, e := range entries {
		fmt.Fprintf(&text, "%s\n", stableJSON(t, e))
	}
	fmt.Fprintf(&text, "exit code %d\n%s", code, stderr.Bytes())
	return runID.ReplaceAll(temporary.ReplaceAll(text.Bytes(), nil), []byte("RUN"))
}

// After calico 7382, 8435, 10551 and 11175: addresses are free, and none for the node of a pod that
// waits.
func TestPodWithoutABlockIsToldWhy(t *testing.T) {
	dir := "testdata/golden/calico-no-free-block"
	files := []string{"--from=" + filepath.Join(dir, "store.json"), "--from=" + filepath.Join(dir, "pods.json"), "--policy=" + filepath.Join(dir, "policy.yaml")}
	for _, tt := range []struct {
		command []string
		says    []string
		not     string
	}{
		{[]string{"explain", "app/hang-1"}, []string{
			"waits for an address of default-ipv4-ippool (no block is left for its node n-3, which has no block: all 4 blocks are taken, 1 of nodes that do not exist (n-gone), and no node may borrow from the block of another (strictAffinity)",
			"to change   add an IPPool", "to change   or let nodes borrow",
		}, "make the range larger"},
		{[]string{"pools"}, []string{"blocks: 3 with room, 0 full, 1 of missing nodes (n-gone), 0 not taken, no node may borrow, no room for 1 node"}, "no networks"},
		{[]string{"pools", "-o=json"}, []string{`"missingNodes": [`, `"mayBorrow": false`, `"nodesWithoutRoom": 1`}, `"unclaimed": null`},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), streams(&stdout, &stderr), append(tt.command, files...)); code != 0 {
			t.Errorf("%v: exit code %d, %s", tt.command, code, stderr.String())
		}
		for _, want := range tt.says {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("%v does not say %q:\n%s", tt.command, want, stdout.String())
			}
		}
		if strings.Contains(stdout.String(), tt.not) {
			t.Errorf("%v says %q:\n%s", tt.command, tt.not, stdout.String())
		}
	}
}

// temporary matches the folder of a test.
var temporary = regexp.MustCompile(`[^" ]*/TestReportsAreGolden[^" ]*/`)

// runID matches the ID of a run.
var runID = regexp.MustCompile(`\b\d{8}-\d{6}-[0-9A-Z]{6}\b`)

// stamp matches a time as reports say it.
var stamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// stableJSON returns a value without the numbers of rules, and with a word for the time of the test.
func stableJSON(t *testing.T, value any) []byte {
	t.Helper()
	withoutRules(value)
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return stamp.ReplaceAllFunc(data, func(text []byte) []byte {
		at, err := time.Parse(time.RFC3339, string(text))
		if err == nil && time.Since(at).Abs() < time.Hour {
			return []byte("NOW")
		}
		return text
	})
}

// withoutRules removes the numbers of rules from a JSON value.
func withoutRules(value any) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "rule")
		for _, inner := range v {
			withoutRules(inner)
		}
	case []any:
		for _, inner := range v {
			withoutRules(inner)
		}
	}
}

// etcdctl writes what "etcdctl get -w json" prints of these keys, and returns the file.
func etcdctl(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var pairs []struct{ Key, Value string }
	if err := json.Unmarshal(text, &pairs); err != nil {
		t.Fatal(err)
	}
	type kv struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
	}
	var dump struct {
		Kvs []kv `json:"kvs"`
	}
	for _, p := range pairs {
		dump.Kvs = append(dump.Kvs, kv{[]byte(p.Key), []byte(p.Value)})
	}
	data, err := json.Marshal(dump)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, "dump.json", data)
}
