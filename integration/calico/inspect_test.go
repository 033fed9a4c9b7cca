package calico_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// dump writes what kubectl prints into a file.
func (s *fixture) dump(name string, args ...string) string {
	s.Helper()
	path, err := assets.Path("kubectl")
	s.must(err)
	cmd := exec.CommandContext(s.Context(), path, append([]string{"--kubeconfig=" + s.Cluster.Kubeconfig}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.Fatalf("kubectl: %v: %s", err, stderr.Bytes())
	}
	file := filepath.Join(s.TempDir(), name)
	s.must(os.WriteFile(file, out, 0o600))
	return file
}

// dumpStore writes Calico's blocks and handles into a file, as "kubectl get -o yaml" or "etcdctl get
// -w json" prints them.
func (s *fixture) dumpStore() string {
	s.Helper()
	if s.Etcd == nil {
		return s.dump("ipam.yaml", "get", "ipamblocks.crd.projectcalico.org,ipamhandles.crd.projectcalico.org", "-o", "yaml")
	}
	type pair struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
	}
	var pairs []pair
	for _, kind := range []calico.Kind{calico.Block, calico.Handle} {
		list, err := s.List(s.Context(), kind)
		s.must(err)
		for name, o := range list {
			pairs = append(pairs, pair{[]byte(name), []byte(o.Content)})
		}
	}
	text, err := json.Marshal(map[string]any{"header": map[string]int{"revision": 1}, "kvs": pairs})
	s.must(err)
	file := filepath.Join(s.TempDir(), "ipam.json")
	s.must(os.WriteFile(file, text, 0o600))
	return file
}

// Inspecting the dumps of a real cluster gives the same result as a dry run there.
func TestDumpsSayWhatADryRunSays(t *testing.T) {
	each(t, func(s *fixture) {
		s.leak("gone")
		s.live("web")
		both := calico.NewSandbox(shop, "both", node)
		both.IPv4, both.IPv6 = true, true
		ips, err := s.Add(s.Context(), both)
		s.must(err)
		s.must(s.CreatePod(s.Context(), both, ips[:1]))

		online := s.mustReap(reap.ExitDone, releaseNow, "--dry-run")
		store := s.dumpStore()
		pods := s.dump("pods.json", "get", "pods,statefulsets,nodes", "-A", "-o", "json")
		policy := filepath.Join(s.TempDir(), "policy.yaml")
		s.must(os.WriteFile(policy, []byte(releaseNow), 0o600))
		r, err := reap.New()
		s.must(err)
		offline, err := r.Run(s.Context(), "inspect", store, "--pods="+pods, "--policy="+policy, "-o=json", "--all")
		s.must(err)
		if offline.ExitCode != reap.ExitDone || offline.Report == nil {
			s.Fatalf("exit code %d; stderr:\n%s", offline.ExitCode, offline.Stderr)
		}
		if diff := cmp.Diff(lines(online), lines(offline.Report)); diff != "" {
			s.Errorf("entries (-online +offline):\n%s", diff)
		}
		if n := len(offline.Report.Entries); n != 4 {
			s.Errorf("%d entries, want 4", n)
		}
	})
}
