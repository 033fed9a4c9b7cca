package calico_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A stranger is a server that should be sent nothing.
type stranger struct {
	address string
	asked   atomic.Int32 // connections
}

func startStranger(t *testing.T) *stranger {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stranger{address: listener.Addr().String()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			s.asked.Add(1)
			_ = connection.Close()
		}
	}()
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return s
}

// A bait is a file that should not be read: a pipe, whose other end notices a reader
// and gives it a token.
type bait struct {
	name string
	read atomic.Bool
}

func layBait(t *testing.T) *bait {
	t.Helper()
	b := &bait{name: filepath.Join(t.TempDir(), "token")}
	if err := syscall.Mkfifo(b.name, 0o600); err != nil {
		t.Fatal(err)
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			pipe, err := os.OpenFile(b.name, os.O_WRONLY, 0) // waits for a reader
			select {
			case <-over:
				err = errors.Join(err, errors.New("the test is over"))
			default:
			}
			if err != nil {
				_ = pipe.Close()
				return
			}
			b.read.Store(true)
			_, _ = pipe.WriteString(token + "\n")
			_ = pipe.Close()
		}
	}()
	t.Cleanup(func() {
		close(over)
		reader, err := os.OpenFile(b.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			t.Error(err)
		}
		<-done
		_ = reader.Close()
	})
	return b
}

// token is what a hostile policy is after.
const token = "eyJhbGciOiJSUzI1NiJ9.t0ken"

// An author of a policy gets no file of the pod and no credential of the environment,
// and leads the reaper to no server, by a dry run or by a release. Nor does a mistake
// in the environment send a credential in the clear, or a token of the service account.
func TestNothingSecretLeaves(t *testing.T) {
	e := calico.StartEtcdT(t, calico.EtcdOptions{TLS: true, Password: true})
	s := newFixture(t, calico.OnEtcdT(t, e))
	s.leak("gone")
	before, err := s.Versions(t.Context())
	s.must(err)
	const (
		ofThePolicy = "backends.calico.etcd: Forbidden: unknown field"
		account     = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	)
	link := filepath.Join(t.TempDir(), "key")
	s.must(os.Symlink("/proc/self/root"+account, link))
	for _, tt := range []struct {
		name string
		etcd string   // of the policy; HOST is the stranger, and BAIT a file
		env  []string // in place of what is right
		want string
	}{
		{"a token by the policy, in the clear", "endpoints: ['http://HOST'], username: a, passwordFile: 'BAIT'", nil, ofThePolicy},
		{"a token by the policy", "endpoints: ['https://HOST'], username: a, passwordFile: 'BAIT'", nil, ofThePolicy},
		{"a certificate by the policy", "endpoints: ['https://HOST'], caFile: 'BAIT', certFile: 'BAIT', keyFile: 'BAIT'", nil, ofThePolicy},
		{"credentials of the environment to the policy's endpoint, in the clear", "endpoints: ['http://HOST']", nil, ofThePolicy},
		{"credentials of the environment to the policy's endpoint", "endpoints: ['https://HOST']", nil, ofThePolicy},
		{"a token to the environment's endpoint", "username: a, passwordFile: 'BAIT'", []string{"ETCD_ENDPOINTS=https://HOST"}, ofThePolicy},
		{"no credential", "endpoints: ['http://HOST']", []string{
			"ETCD_USERNAME=", "ETCD_PASSWORD=", "ETCD_CA_CERT_FILE=", "ETCD_CERT_FILE=", "ETCD_KEY_FILE=",
		}, ofThePolicy},
		{"the environment, in the clear", "", []string{"ETCD_ENDPOINTS=http://HOST"}, "ETCD_ENDPOINTS has an http endpoint and ETCD_USERNAME is set"},
		{"the environment, in part in the clear", "", []string{"ETCD_ENDPOINTS=" + e.Endpoint + ",http://HOST", "ETCD_KEY_FILE=BAIT"}, "has an http endpoint"},
		{"the environment, without a scheme", "", []string{"ETCD_ENDPOINTS=HOST", "ETCD_KEY_FILE=BAIT"}, "ETCD_ENDPOINTS: item 1 is not https://host:port"},
		{"the token of the service account", "", []string{"ETCD_ENDPOINTS=https://HOST", "ETCD_CERT_FILE=BAIT", "ETCD_KEY_FILE=" + account}, "is of the pod's service account"},
		{"the token of the service account, by a link", "", []string{"ETCD_ENDPOINTS=https://HOST", "ETCD_CERT_FILE=BAIT", "ETCD_KEY_FILE=" + link}, "ETCD_KEY_FILE: "},
	} {
		for _, dryRun := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, dry run %v", tt.name, dryRun), func(t *testing.T) {
				stranger, bait := startStranger(t), layBait(t)
				fill := strings.NewReplacer("HOST", stranger.address, "BAIT", bait.name)
				s := &fixture{T: t, Datastore: s.Datastore, kubeconfig: s.kubeconfig, env: variables(e)}
				for _, variable := range tt.env {
					s.env = append(s.env, fill.Replace(variable))
				}
				terms := ""
				if tt.etcd != "" {
					terms = "backends: {calico: {datastore: etcdv3, etcd: {" + fill.Replace(tt.etcd) + "}}}\n"
				}
				result := s.reap(releaseNow+terms, fmt.Sprintf("--dry-run=%v", dryRun))
				if result.ExitCode != reap.ExitUsage || !strings.Contains(result.Stderr, tt.want) || result.Stdout != "" {
					t.Errorf("exit code %d, want %d and %q\n%s", result.ExitCode, reap.ExitUsage, tt.want, result.Stderr)
				}
				for _, secret := range []string{token, e.Password} {
					if strings.Contains(result.Stdout+result.Stderr, secret) {
						t.Errorf("%q is in what was printed:\n%s%s", secret, result.Stdout, result.Stderr)
					}
				}
				if n := stranger.asked.Load(); n > 0 {
					t.Errorf("the stranger was connected to %d times", n)
				}
				if bait.read.Load() {
					t.Error("the file was read")
				}
			})
		}
	}
	after, err := s.Versions(t.Context())
	s.must(err)
	s.wantEqual(before, after)
}
