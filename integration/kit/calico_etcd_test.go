package kit_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
)

func TestUserOfAGuardedEtcdHasCalicosKeysAlone(t *testing.T) {
	e := calico.StartEtcdT(t, calico.EtcdOptions{Password: true})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{e.Endpoint}, Username: e.User, Password: e.Password, Context: ctx, Logger: zap.NewNop(),
	})
	must(t, err)
	if _, err := client.Get(ctx, "/registry/pods"); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Errorf("get: %v, want %v", err, rpctypes.ErrPermissionDenied)
	}
	must(t, client.Close())
}

func TestStoppedEtcdLeavesNothing(t *testing.T) {
	e, err := calico.StartEtcd(t.Context(), calico.EtcdOptions{})
	must(t, err)
	must(t, e.Stop())
	if _, err := os.Lstat(e.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder %s is still there: %v", e.Dir, err)
	}
}
