package calico_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// dump writes what ip-reaper dump prints into a file, with more behind it.
func (s *fixture) dump(policy, more string) string {
	s.Helper()
	program, err := assets.Path("ip-reaper")
	s.must(err)
	out, err := exec.CommandContext(s.Context(), program, "dump", "--kubeconfig="+s.Cluster.Kubeconfig, "--policy="+policy).Output()
	s.must(err)
	file := filepath.Join(s.TempDir(), "dump.json")
	s.must(os.WriteFile(file, append(out, more...), 0o600))
	return file
}

// etcdctl returns Calico's blocks, handles and a node, as "etcdctl get -w json" prints them; nothing if
// Calico is not in etcd.
func (s *fixture) etcdctl() string {
	s.Helper()
	if s.Etcd == nil {
		return ""
	}
	type pair struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
	}
	pairs := []pair{{
		[]byte("/calico/resources/v3/projectcalico.org/nodes/" + node),
		fmt.Appendf(nil, `{"metadata": {"name": %q}, "spec": {"orchRefs": [{"nodeName": %[1]q, "orchestrator": "k8s"}]}}`, node),
	}}
	for _, kind := range []calico.Kind{calico.Block, calico.Handle} {
		list, err := s.List(s.Context(), kind)
		s.must(err)
		for name, o := range list {
			pairs = append(pairs, pair{[]byte(name), []byte(o.Content)})
		}
	}
	text, err := json.Marshal(map[string]any{"header": map[string]int{"revision": 1}, "kvs": pairs})
	s.must(err)
	return string(text)
}

// notes are the notes of a report, by address.
func notes(r *reap.Report) map[string]string {
	all := map[string]string{}
	for _, e := range r.Entries {
		all[e.IP+e.Key] = e.Note
	}
	return all
}

// Inspecting the dump of a real cluster gives the same result as a dry run there, whatever protects
// addresses. The dump has the ledger.
func TestDumpsSayWhatADryRunSays(t *testing.T) {
	each(t, func(s *fixture) {
		s.leak("gone")
		_, kept := s.leak("reserved")
		s.live("web")
		both := calico.NewSandbox(shop, "both", node)
		both.IPv4, both.IPv6 = true, true
		ips, err := s.Add(s.Context(), both)
		s.must(err)
		s.must(s.CreatePod(s.Context(), both, ips[:1]))
		if s.Etcd == nil {
			s.keep("mine", kept.String())
		}
		policy := filepath.Join(s.TempDir(), "policy.yaml")
		s.must(os.WriteFile(policy, []byte(releaseNow), 0o600))

		s.mustReap(reap.ExitDone, releaseNow, "--dry-run", "--remember")
		online := s.mustReap(reap.ExitDone, releaseNow, "--dry-run")
		ofDump := policy
		if s.Etcd != nil { // etcdctl dumps it
			ofDump = filepath.Join(s.TempDir(), "elsewhere.yaml")
			s.must(os.WriteFile(ofDump, []byte(releaseNow+"backends: {calico: {enabled: false}}\n"), 0o600))
		}
		dump := s.dump(ofDump, s.etcdctl())
		r, err := reap.New()
		s.must(err)
		offline, err := r.Run(s.Context(), "inspect", dump, "--policy="+policy, "-o=json", "--all")
		s.must(err)
		if offline.ExitCode != reap.ExitDone || offline.Report == nil {
			s.Fatalf("exit code %d; stderr:\n%s", offline.ExitCode, offline.Stderr)
		}
		if diff := cmp.Diff(lines(online), lines(offline.Report)); diff != "" {
			s.Errorf("entries (-online +offline):\n%s", diff)
		}
		if diff := cmp.Diff(notes(online), notes(offline.Report)); diff != "" {
			s.Errorf("notes (-online +offline):\n%s", diff)
		}
		if n := len(offline.Report.Entries); n != 5 {
			s.Errorf("%d entries, want 5", n)
		}
	})
}
