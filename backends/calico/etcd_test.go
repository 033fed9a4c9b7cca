package calico

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

func TestNamesOfObjects(t *testing.T) {
	for _, tt := range []struct {
		kind              kind
		id, key, resource string
	}{
		{blocks, "10.0.0.0/26", "/calico/ipam/v2/assignment/ipv4/block/10.0.0.0-26", "10-0-0-0-26"},
		{blocks, "fd80:24e2::/122", "/calico/ipam/v2/assignment/ipv6/block/fd80:24e2::-122", "fd80-24e2---122"},
		{blocks, "::/122", "/calico/ipam/v2/assignment/ipv6/block/::-122", "---122"},
		{handles, "k8s-pod-network.0A", "/calico/ipam/v2/handle/k8s-pod-network.0A", "k8s-pod-network.0a"},
		{handles, "lb-n4/bQ+=", "/calico/ipam/v2/handle/lb-n4/bQ+=", "lb-n4/bq+="},
	} {
		if key, resource := etcdKey(tt.kind, tt.id), resourceName(tt.kind, tt.id); key != tt.key || resource != tt.resource {
			t.Errorf("%s is at key %s and in resource %s, want %s and %s", tt.id, key, resource, tt.key, tt.resource)
		}
		if h, err := readHandle(object{name: tt.key, raw: []byte(`{}`)}); tt.kind == handles && (err != nil || h.id != tt.id) {
			t.Errorf("the handle at %s is %q, %v, want %q", tt.key, h.id, err, tt.id)
		}
	}
}

// A request that the server refused would be refused again. After any other error,
// the request may be tried again.
func TestEtcdErrors(t *testing.T) {
	for _, tt := range []struct {
		err   error
		again bool
	}{
		{rpctypes.ErrPermissionDenied, false},
		{rpctypes.ErrAuthFailed, false},
		{rpctypes.ErrGRPCPermissionDenied, false},
		{rpctypes.ErrTooManyOps, false},
		{status.Error(codes.Unauthenticated, "who are you"), false},
		{status.Error(codes.InvalidArgument, "no"), false},
		{rpctypes.ErrNoLeader, true},
		{rpctypes.ErrTimeout, true},
		{rpctypes.ErrNoSpace, true},
		{status.Error(codes.Unavailable, "no connection"), true},
		{context.DeadlineExceeded, true},
		{context.Canceled, true},
		{errors.New("something else"), true},
		{fmt.Errorf("%w: already", ipam.ErrAgain), true},
	} {
		for _, err := range []error{tt.err, fmt.Errorf("etcd: %w", tt.err)} {
			got := etcd{}.transient(err)
			if errors.Is(got, ipam.ErrAgain) != tt.again || !errors.Is(got, tt.err) {
				t.Errorf("transient(%v) = %v, want another try: %v", err, got, tt.again)
			}
		}
	}
	if err := (etcd{}).transient(nil); err != nil {
		t.Errorf("transient(nil) = %v", err)
	}
}
