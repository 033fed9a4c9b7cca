package cli

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/ip-reaper/ip-reaper/backends"
)

const (
	noPods      = `{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": []}`
	plainPolicy = `{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "data": {"policy.yaml": "{apiVersion: ip-reaper/v1alpha1, kind: ReapPolicy}"}}`
	noSets      = `{"kind": "StatefulSetList", "apiVersion": "apps/v1", "metadata": {"resourceVersion": "9"}, "items": []}`
)

// newFakeAPI returns an API server with the given lists, and the arguments with its
// kubeconfig.
func newFakeAPI(t *testing.T, lists map[string]string) (*fakeAPI, []string) {
	t.Helper()
	s := &fakeAPI{dir: t.TempDir()}
	for resource, list := range lists {
		if err := os.WriteFile(filepath.Join(s.dir, resource+".json"), []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s, leadTo(t, s)
}

// leadTo serves, and returns the arguments that lead there.
func leadTo(t *testing.T, handler http.Handler) []string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return leadToAddress(t, server.URL)
}

// leadToAddress returns the arguments of a run that releases, and contacts a server.
func leadToAddress(t *testing.T, address string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, fmt.Appendf(nil, kubeconfig, address), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--kubeconfig", file, "--context", "here", "--dry-run=false",
		"--termination-log", filepath.Join(t.TempDir(), "none")}
}

// streams are those of a program with all backends and no variables.
func streams(out, errs *bytes.Buffer) ioStreams {
	return ioStreams{
		environ: func() []string { return nil }, env: func(string) string { return "" },
		stdin: strings.NewReader(""), stdout: out, stderr: &oneAtATime{w: errs}, backends: backends.All(), now: time.Now, sleep: sleep, firstAnswer: firstAnswer,
	}
}

// A oneAtATime is a writer for several goroutines, as a file is.
type oneAtATime struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *oneAtATime) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(data)
}

// start runs the program without the process around it.
func start(ctx context.Context, terminal bool, args []string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	w := streams(&out, &errs)
	w.terminal = terminal
	return run(ctx, w, args), out.String(), errs.String()
}

// What people read in the report is not logged on the same terminal too. Elsewhere, the log has it.
func TestWarningOfTheReportIsNotLoggedOnTheSameTerminal(t *testing.T) {
	const forbidden = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no right"}`
	_, args := newFakeAPI(t, map[string]string{"ippools": forbidden, "pods": forbidden, "statefulsets": noSets})
	args = append(args[:2:2], args[5:]...) // a dry run
	for _, tt := range []struct {
		name     string
		together bool // stderr and stdout
		more     []string
		logged   int
	}{
		{"both on the terminal", true, nil, 0},
		{"pools", true, []string{"pools"}, 0},
		{"the report in a file", false, nil, 1},
		{"JSON", true, []string{"-o", "json"}, 1},
		{"a verbose log", true, []string{"-v"}, 1},
	} {
		var out, errs bytes.Buffer
		w := streams(&out, &errs)
		w.terminal, w.together = true, tt.together
		all := append(tt.more[:len(tt.more):len(tt.more)], args...)
		if slices.Contains(tt.more, "pools") {
			all = append(tt.more[:1:1], args[:2]...)
		}
		run(t.Context(), w, all)
		const warning = "no policy is installed in namespace ip-reaper"
		if got := strings.Count(errs.String(), warning); got != tt.logged || !strings.Contains(out.String(), warning) {
			t.Errorf("%s: logged %d times, want %d\n%s%s", tt.name, got, tt.logged, errs.String(), out.String())
		}
		if got := strings.Contains(errs.String(), "failed: whereabouts: "); got != (tt.logged > 0) {
			t.Errorf("%s: an error is logged: %v\n%s%s", tt.name, got, errs.String(), out.String())
		}
		const failure = "census: list pods: "
		if got := strings.Count(out.String(), failure) + strings.Count(errs.String(), failure); tt.logged == 0 && got != 1 {
			t.Errorf("%s: an error is said %d times:\n%s%s", tt.name, got, errs.String(), out.String())
		}
	}
}

func TestTerminalGetsProgressInsteadOfLogs(t *testing.T) {
	_, args := newFakeAPI(t, map[string]string{"pods": noPods, "statefulsets": noSets, "ip-reaper-policy": plainPolicy})
	code, stdout, stderr := start(t.Context(), true, args)
	if code != exitDone || !strings.Contains(stdout, "released 0 addresses (0 of 0") {
		t.Errorf("exit code %d, stdout:\n%s", code, stdout)
	}
	if want := "listed 0 of 3 stores (whereabouts skipped; overlapping skipped; calico skipped)\nfound 0 pods\njudged 0 allocations: 0 due\ndone\n"; stderr != want {
		t.Errorf("stderr = %q, want %q", stderr, want)
	}
	if _, _, stderr = start(t.Context(), true, append(args, "-v")); !strings.HasPrefix(stderr, "run (version ") {
		t.Errorf("stderr with -v = %q, want logs for people", stderr)
	}
}

// SIGTERM ends the context.
func TestInterruptedRunWritesNothingAndSaysSo(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	s, _ := newFakeAPI(t, map[string]string{"statefulsets": noSets})
	args := leadTo(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/pods") {
			interrupt()
			<-r.Context().Done() // the program hangs up
			return
		}
		s.ServeHTTP(w, r)
	}))
	code, stdout, stderr := start(ctx, false, args)
	if code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	if !strings.Contains(stdout, "released 0 addresses (0 of 0") {
		t.Errorf("stdout = %q, want the report", stdout)
	}
	if !strings.Contains(stderr, "ip-reaper: census: ") {
		t.Errorf("stderr = %q, want what was interrupted", stderr)
	}
	if n := s.writes.Load(); n != 1 {
		t.Errorf("%d writes, want that of its end into the ledger", n)
	}
}

// Every request says who sent it, so that audit logs can be read.
func TestRequestsCarryTheName(t *testing.T) {
	s, _ := newFakeAPI(t, map[string]string{"pods": noPods, "statefulsets": noSets})
	args := leadTo(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if agent := r.UserAgent(); !strings.HasPrefix(agent, "ip-reaper/") {
			t.Errorf("%s %s by %q, want ip-reaper/VERSION", r.Method, r.URL.Path, agent)
		}
		s.ServeHTTP(w, r)
	}))
	if code, _, stderr := start(t.Context(), false, args); code != exitDone {
		t.Errorf("exit code %d, stderr:\n%s", code, stderr)
	}
}

// A refusingEtcd refuses every password, and records it.
type refusingEtcd struct {
	etcdserverpb.UnimplementedAuthServer
	mu    sync.Mutex
	tried []string
}

func (k *refusingEtcd) Authenticate(_ context.Context, r *etcdserverpb.AuthenticateRequest) (*etcdserverpb.AuthenticateResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tried = append(k.tried, r.Name+" "+r.Password)
	return nil, rpctypes.ErrGRPCAuthFailed
}

// A password goes to etcd and nowhere else, even if etcd refuses it.
func TestPasswordOfEtcdIsNowhere(t *testing.T) {
	const password = "hunter2-s3cret"
	issuer := httptest.NewTLSServer(nil)
	issuer.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuer.Certificate().Raw})
	if err := os.WriteFile(ca, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	k := &refusingEtcd{}
	server := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&issuer.TLS.Certificates[0])))
	etcdserverpb.RegisterAuthServer(server, k)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	env := map[string]string{
		"ETCD_ENDPOINTS": "https://" + listener.Addr().String(), "ETCD_CA_CERT_FILE": ca,
		"ETCD_USERNAME": "calico", "ETCD_PASSWORD": password,
	}
	_, args := newFakeAPI(t, map[string]string{"pods": noPods, "statefulsets": noSets})
	var out, errs bytes.Buffer
	w := streams(&out, &errs)
	w.env = func(key string) string { return env[key] }
	inEtcd := filepath.Join(t.TempDir(), "policy.yaml")
	text := "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\nbackends: {calico: {datastore: etcdv3}}\n"
	if err := os.WriteFile(inEtcd, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code := run(t.Context(), w, append(args, "-v", "-o", "json", "--policy", inEtcd))
	if code != exitPartial || !strings.Contains(out.String(), rpctypes.ErrorDesc(rpctypes.ErrGRPCAuthFailed)) {
		t.Errorf("exit code %d, want %d, and why in the report:\n%s", code, exitPartial, out.String())
	}
	if len(k.tried) == 0 || k.tried[0] != "calico "+password {
		t.Errorf("etcd was sent %q, want the user and the password", k.tried)
	}
	for _, text := range []string{out.String(), errs.String()} {
		if strings.Contains(text, "s3cret") {
			t.Errorf("the password is in\n%s", text)
		}
	}
}
