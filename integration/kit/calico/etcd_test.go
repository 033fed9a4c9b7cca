package calico_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
)

func TestProgramsWorkOnAGuardedEtcd(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options calico.EtcdOptions
	}{
		{"certificates", calico.EtcdOptions{TLS: true}},
		{"password", calico.EtcdOptions{Password: true}},
		{"certificates and password", calico.EtcdOptions{TLS: true, Password: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := calico.OnEtcdT(t, calico.StartEtcdT(t, tt.options))
			ready(t, d)
			s, _ := addPod(t, d, "web-0")
			addLeak(t, d, "gone")
			if r := check(t, d); len(r.Leaked) != 1 || r.Problems != 1 {
				t.Errorf("report: %s, want one leak", r.Text)
			}
			d.StartControllersT(t, time.Minute)
			must(t, d.Del(t.Context(), s))
			if got := handles(t, d); len(got) != 1 {
				t.Errorf("handles %v, want that of the leak", got)
			}
		})
	}
}

func TestGuardedEtcdTurnsStrangersAway(t *testing.T) {
	connect := func(t *testing.T, e *calico.Etcd, config clientv3.Config) error {
		t.Helper()
		config.Endpoints, config.Logger = []string{e.Endpoint}, zap.NewNop()
		config.DialTimeout = time.Second
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		client, err := clientv3.New(config)
		if err != nil {
			return err
		}
		_, err = client.Get(ctx, "/registry/pods")
		return errors.Join(err, client.Close())
	}
	t.Run("no certificate", func(t *testing.T) {
		e := calico.StartEtcdT(t, calico.EtcdOptions{TLS: true})
		ca, err := os.ReadFile(e.CAFile)
		must(t, err)
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(ca)
		if err := connect(t, e, clientv3.Config{TLS: &tls.Config{RootCAs: pool}}); err == nil {
			t.Error("a client without a certificate was answered")
		}
	})
	e := calico.StartEtcdT(t, calico.EtcdOptions{Password: true})
	for _, tt := range []struct {
		name           string
		user, password string
		want           error
	}{
		{"no user", "", "", rpctypes.ErrUserEmpty},
		{"wrong password", e.User, "guess", rpctypes.ErrAuthFailed},
		{"key that is not Calico's", e.User, e.Password, rpctypes.ErrPermissionDenied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := connect(t, e, clientv3.Config{Username: tt.user, Password: tt.password})
			if !errors.Is(err, tt.want) {
				t.Errorf("get: %v, want %v", err, tt.want)
			}
		})
	}
}

func TestStoppedEtcdLeavesNothing(t *testing.T) {
	e, err := calico.StartEtcd(t.Context(), calico.EtcdOptions{})
	must(t, err)
	must(t, e.Stop())
	if _, err := os.Lstat(e.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder %s is still there: %v", e.Dir, err)
	}
}
