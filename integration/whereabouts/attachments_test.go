package whereabouts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A tenant's attachments may have more configurations than there is memory: here 64 MiB, for which
// 512 MiB are too few once each exclude is decoded. What leaked of their ranges is released as anything else.
func TestAttachmentsWithMoreConfigurationsThanMemory(t *testing.T) {
	f := newFixture(t)
	f.leak("web-0")
	f.attach("lan", `"range":"`+network.Range+`"`)
	f.writePool("10.3.0.0-24", "10.3.0.0/24", `{"5":{"id":"c","podref":"shop/web-1","ifname":"net1"}}`)
	var excludes []string
	for n := range 65_000 {
		excludes = append(excludes, fmt.Sprintf(`"10.%d.%d.%d"`, 128+n>>14, n>>6&255, n&63<<2))
	}
	long := `"exclude":[` + strings.Join(excludes, ",") + `]`
	for n := range 64 {
		f.attach(fmt.Sprint("long-", n), `"range":"10.2.0.0/24",`+long)
	}
	f.attach("longest", `"range":"10.3.0.0/24","network_name":"",`+long)

	file := filepath.Join(t.TempDir(), "policy.yaml")
	f.must(os.WriteFile(file, []byte(header+noLimit), 0o600))
	reaper, err := reap.New()
	f.must(err)
	limited := reap.Reaper{Path: "sh", Env: []string{"GOMEMLIMIT=400MiB"}}
	got, err := limited.Run(t.Context(), append([]string{"-c", `ulimit -d 524288 && exec "$0" "$@"`, reaper.Path,
		"run", "--kubeconfig", f.kubeconfig, "--context", cluster.ContextName, "--state-namespace", cluster.PoolNamespace,
		"--policy", file, "-o", "json", "--all"}, reap.ByFile(header)...)...)
	f.must(err)
	r := f.read(got)
	f.wantLines([]string{
		"10.1.0.0-24/1 10.1.0.1 web-0 orphan PodAbsent released",
		"10.1.0.1 10.1.0.1 web-0 orphan PodAbsent released",
		"10.3.0.0-24/5 10.3.0.5 web-1 orphan PodAbsent released",
	}, r.lines)
	if !strings.Contains(r.stderr, "network attachment shop/long-0: ") || r.exit != reap.ExitDone {
		t.Errorf("exit code %d, want 0 and a warning of shop/long-0:\n%s", r.exit, r.stderr)
	}
}
