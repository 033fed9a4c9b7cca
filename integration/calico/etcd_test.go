package calico_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// variables returns the environment that tells Calico's own programs about an etcd.
func variables(e *calico.Etcd) []string {
	return []string{
		"ETCD_ENDPOINTS=" + e.Endpoint, "ETCD_USERNAME=" + e.User, "ETCD_PASSWORD=" + e.Password,
		"ETCD_CA_CERT_FILE=" + e.CAFile, "ETCD_CERT_FILE=" + e.CertFile, "ETCD_KEY_FILE=" + e.KeyFile,
	}
}

// reapSecretly runs the reaper, which must not reveal etcd's credentials, even if it logs every
// decision.
func (s *fixture) reapSecretly(e *calico.Etcd, args ...string) reap.Result {
	s.Helper()
	result, err := s.start(releaseNow, append(args, "-v")...).Wait()
	s.must(err)
	var secrets []string
	if e.Password != "" {
		secrets = append(secrets, e.Password)
	}
	if e.KeyFile != "" {
		key, err := os.ReadFile(e.KeyFile)
		s.must(err)
		for line := range strings.Lines(string(key)) {
			if !strings.HasPrefix(line, "-----") {
				secrets = append(secrets, strings.TrimSpace(line))
			}
		}
	}
	for _, secret := range secrets {
		if strings.Contains(result.Stdout+result.Stderr, secret) {
			s.Errorf("%q is in what was printed:\n%s%s", secret, result.Stdout, result.Stderr)
		}
	}
	return result
}

// guards has the ways to protect an etcd, the most complete one first.
var guards = []struct {
	name string
	calico.EtcdOptions
}{
	{"certificates and password", calico.EtcdOptions{TLS: true, Password: true}},
	{"certificates", calico.EtcdOptions{TLS: true}},
	{"password", calico.EtcdOptions{ServerTLS: true, Password: true}},
}

// Calico's own programs and the reaper get into each etcd, with the same variables.
func TestEveryGuardOfEtcd(t *testing.T) {
	some := guards
	if testing.Short() {
		some = guards[:1]
	}
	for _, guard := range some {
		t.Run(guard.name, func(t *testing.T) {
			e := calico.StartEtcdT(t, guard.EtcdOptions)
			s := newFixture(t, calico.OnEtcdT(t, e))
			_, web := s.live("web")
			_, ip := s.leak("gone")
			s.env = variables(e)
			result := s.reapSecretly(e)
			if result.ExitCode != reap.ExitDone {
				t.Fatalf("exit code %d\n%s", result.ExitCode, result.Stderr)
			}
			s.wantOutcomes(result.Report, map[netip.Addr]string{ip: "released", web: "kept"})
			s.wantWhole(map[string]bool{web.String(): true})
		})
	}
}

// A run that cannot read etcd says why, soon, and the other backends go on (promises 9 and 11).
func TestEveryEtcdThatCannotBeRead(t *testing.T) {
	const soon = 45 * time.Second // for a busy machine; the client alone would take a minute
	other := calico.StartEtcdT(t, calico.EtcdOptions{TLS: true})
	e := calico.StartEtcdT(t, calico.EtcdOptions{TLS: true, Password: true})
	s := newFixture(t, calico.OnEtcdT(t, e))
	s.leak("gone")
	before := s.state()
	// A server that accepts connections and never answers.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	t.Cleanup(func() { s.must(silent.Close()) })
	const (
		down     = "127.0.0.1:1"                            // where no server listens
		rejected = "tls: |broken pipe|connection reset|EOF" // by then the client believes that it is connected
	)
	for _, tt := range []struct {
		name string
		env  map[string]string // replaces the correct variables
		want string            // a regular expression
		long bool              // not with -short
	}{
		{"the server is down", map[string]string{"ETCD_ENDPOINTS": "https://" + down}, "connect: connection refused", false},
		{"the server is silent", map[string]string{"ETCD_ENDPOINTS": "https://" + silent.Addr().String()}, "no answer", true},
		{"another CA", map[string]string{"ETCD_CA_CERT_FILE": other.CAFile}, "certificate signed by unknown authority", false},
		{"no certificate", map[string]string{"ETCD_CERT_FILE": "", "ETCD_KEY_FILE": ""}, rejected, false},
		{"another password", map[string]string{"ETCD_PASSWORD": "guess"}, "invalid user ID or password", false},
		{"no user", map[string]string{"ETCD_USERNAME": "", "ETCD_PASSWORD": ""}, "permission denied", false},
	} {
		if tt.long && testing.Short() {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // none of them writes, and some wait
			s := &fixture{T: t, Datastore: s.Datastore, kubeconfig: s.kubeconfig, env: variables(e)}
			for name, value := range tt.env {
				s.env = append(s.env, name+"="+value)
			}
			began := time.Now()
			result := s.reapSecretly(e, "--dry-run") // the subtests run in parallel
			took := time.Since(began)
			if result.ExitCode != reap.ExitPartial || result.Report == nil {
				t.Fatalf("exit code %d, want %d and a report\n%s", result.ExitCode, reap.ExitPartial, result.Stderr)
			}
			if took > soon {
				t.Errorf("it took %v", took)
			}
			if len(result.Report.Backends) == 0 {
				t.Error("the report has no backend")
			}
			for _, b := range result.Report.Backends {
				if failed := b.Status == "failed"; failed != (b.Name == "calico") || failed && !regexp.MustCompile(tt.want).MatchString(b.Message) {
					t.Errorf("%s: %s %q, want that calico fails with %q", b.Name, b.Status, b.Message, tt.want)
				}
			}
			t.Logf("it took %v", took.Round(time.Millisecond))
			s.wantSame(before)
		})
	}
}

// A user who may only read gets everything planned and nothing released.
func TestEtcdUserWhoMayNotWriteReleasesNothing(t *testing.T) {
	e := calico.StartEtcdT(t, calico.EtcdOptions{TLS: true, Password: true})
	s := newFixture(t, calico.OnEtcdT(t, e))
	_, ip := s.leak("gone")
	_, web := s.live("web")
	const reader, password = "reader", "let-me-read"
	ctx, c := t.Context(), e.Client
	_, err := c.RoleAdd(ctx, reader)
	s.must(err)
	_, err = c.RoleGrantPermission(ctx, reader, "/calico/", clientv3.GetPrefixRangeEnd("/calico/"), clientv3.PermissionType(clientv3.PermRead))
	s.must(err)
	_, err = c.UserAdd(ctx, reader, password)
	s.must(err)
	_, err = c.UserGrantRole(ctx, reader, reader)
	s.must(err)
	before := s.state()

	s.env = append(variables(e), "ETCD_USERNAME="+reader, "ETCD_PASSWORD="+password)
	report := s.mustReap(reap.ExitDone, releaseNow, "--dry-run")
	s.wantOutcomes(report, map[netip.Addr]string{ip: "planned", web: "kept"})
	began := time.Now()
	report = s.mustReap(reap.ExitPartial, releaseNow)
	s.wantOutcomes(report, map[netip.Addr]string{ip: "failed", web: "kept"})
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the refusal took %v", took)
	}
	for _, entry := range report.Entries {
		if entry.Outcome == "failed" && !strings.Contains(entry.Error, "permission denied") {
			t.Errorf("%s failed with %q, want why", entry.IP, entry.Error)
		}
	}
	s.wantSame(before)
}

// A shell may still have the variables of another cluster. Without a word in the policy, nothing of
// that etcd goes (promise 1).
func TestVariablesOfAShellDoNotSayWhichStore(t *testing.T) {
	s := newFixture(t, calico.EtcdT(t))
	_, ip := s.leak("gone")
	before := s.state()
	for _, env := range [][]string{s.env, {"DATASTORE_TYPE=etcdv3"}, append([]string{"DATASTORE_TYPE=kubernetes"}, s.env...)} {
		result, err := reap.StartT(s.T, s.kubeconfig, releaseNow, env).Wait()
		s.must(err)
		variable, _, _ := strings.Cut(env[0], "=")
		if result.ExitCode != reap.ExitUsage || !strings.Contains(result.Stderr, variable) || !strings.Contains(result.Stderr, "backends.calico.datastore") {
			t.Errorf("with %v: exit code %d, want %d, the variable and the field:\n%s", env, result.ExitCode, reap.ExitUsage, result.Stderr)
		}
		s.wantSame(before)
	}
	s.wantOutcomes(s.mustReap(reap.ExitDone, releaseNow), map[netip.Addr]string{ip: "released"})
}

// A run on the etcd of another cluster writes nothing to it, unless a flag says that it is a new one
// (promise 1). Calico's GUID tells the two apart, also if it is missing. A dry run says the same.
func TestEtcdOfAnotherClusterIsRefused(t *testing.T) {
	first := newFixture(t, calico.OnEtcdT(t, calico.StartEtcdT(t, calico.EtcdOptions{})))
	_, web := first.live("web")
	_, ip := first.leak("gone")
	first.wantOutcomes(first.mustReap(reap.ExitDone, releaseNow), map[netip.Addr]string{ip: "released", web: "kept"})

	second := calico.StartEtcdT(t, calico.EtcdOptions{})
	d, err := calico.OnEtcd(t.Context(), first.Cluster, second)
	first.must(err)
	s := &fixture{T: t, Datastore: d, kubeconfig: first.kubeconfig, env: variables(second)}
	s.must(d.ReadyBeside(t.Context(), node))
	_, same := s.leak("same-address") // the pod here shows it
	_, there := s.leak("of-the-other")
	if same != web {
		t.Fatalf("the other cluster's first pod has %s, and this one's %s", same, web)
	}
	for _, guid := range []string{"another", ""} {
		s.must(d.PutGUID(t.Context(), guid))
		before := s.state()
		for _, dry := range []string{"--dry-run=false", "--dry-run"} {
			result := s.start(releaseNow, dry).EndT(t, reap.ExitUsage)
			s.wantOutcomes(result.Report, map[netip.Addr]string{there: "refused", same: "kept"})
			for _, want := range []string{"spec.clusterGUID", `"` + guid + `"`, calico.ClusterGUID, "--accept-new-store"} {
				if !strings.Contains(result.Stderr, want) {
					t.Errorf("%s: it says %q, want %q", dry, result.Stderr, want)
				}
			}
		}
		s.wantSame(before)
	}
	s.must(d.PutGUID(t.Context(), "another"))
	s.wantOutcomes(s.mustReap(reap.ExitDone, releaseNow, "--accept-new-store"), map[netip.Addr]string{there: "released", same: "kept"})
	first.start(releaseNow).EndT(t, reap.ExitUsage)
	s.mustReap(reap.ExitDone, releaseNow)
}

// The first run on the etcd of another cluster knows no GUID. If no pod shows what that etcd has for
// it, although pods of this cluster use the same range, all of it is held (promises 1 and 2).
func TestEtcdOfWhichNoPodShowsAnythingIsHeld(t *testing.T) {
	s := newFixture(t, calico.OnEtcdT(t, calico.StartEtcdT(t, calico.EtcdOptions{})))
	held, released := make(map[netip.Addr]string), make(map[netip.Addr]string)
	for i := range 20 {
		_, ip := s.leak(fmt.Sprint("theirs-", i))
		held[ip], released[ip] = "kept", "released"
	}
	_, same := s.leak("same-address")
	held[same], released[same] = "kept", "kept"
	_, err := s.Cluster.CreatePod(t.Context(), shop, "ours", cluster.PodIPs(same.String()))
	s.must(err)
	before := s.state()
	report := s.mustReap(reap.ExitDone, releaseNow)
	s.wantOutcomes(report, held)
	for _, entry := range report.Entries {
		if entry.IP != same.String() && entry.Reason != "StoreUnseen" {
			t.Errorf("%s is kept for %s", entry.IP, entry.Reason)
		}
	}
	s.wantSame(before)
	_, web := s.live("web")
	released[web] = "kept"
	s.wantOutcomes(s.mustReap(reap.ExitDone, releaseNow), released)
}

// After calico 6997: in etcd, the WorkloadEndpoint of a pod that is gone keeps its address. The report
// says so of what is due, and explain what to type.
func TestEndpointThatOutlivesItsPod(t *testing.T) {
	s := newFixture(t, calico.EtcdT(t))
	_, ip := s.live("web-0")
	s.live("stays")
	s.must(s.Cluster.Kube.CoreV1().Pods(shop).Delete(s.Context(), "web-0", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	note := func() string {
		report := s.mustReap(reap.ExitDone, releaseNow, "--dry-run")
		i := slices.IndexFunc(report.Entries, func(e reap.Entry) bool { return e.IP == ip.String() })
		if i < 0 || report.Entries[i].Outcome != "planned" {
			s.Fatalf("entries %+v, want the address of web-0 planned", report.Entries)
		}
		return report.Entries[i].Note
	}
	const name = "node--1-k8s-web--0-eth0"
	if got := note(); !strings.Contains(got, "its WorkloadEndpoint shop/"+name+" still has the address") {
		t.Errorf("note %q", got)
	}
	_, err := s.Calicoctl(s.Context(), "", "delete", "workloadendpoint", name, "--namespace", shop)
	s.must(err)
	if got := note(); strings.Contains(got, "WorkloadEndpoint") {
		t.Errorf("note %q, after the endpoint was deleted", got)
	}
}
