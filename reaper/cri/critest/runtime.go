// Package critest has a container runtime for tests. It speaks the CRI over a unix socket, and
// has the sandboxes that tests give it.
package critest

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/ip-reaper/ip-reaper/reaper/census"
)

// A Runtime is a fake container runtime. It is safe for concurrent use.
type Runtime struct {
	socket   string
	server   *grpc.Server
	listener net.Listener

	mu        sync.Mutex
	sandboxes []*runtimeapi.PodSandbox
	hook      func(ctx context.Context) error
	lists     int
}

// Start starts a runtime without sandboxes. It stops at the end of the test.
func Start(t testing.TB) *Runtime {
	t.Helper()
	// The path of a socket has at most 107 bytes, and t.TempDir contains the name of the test.
	folder, err := os.MkdirTemp("", "cri") //nolint:usetesting // its path is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	r := &Runtime{socket: filepath.Join(folder, "cri.sock"), server: grpc.NewServer()}
	listener, err := net.Listen("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	r.listener = listener
	runtimeapi.RegisterRuntimeServiceServer(r.server, service{r: r})
	go func() { _ = r.server.Serve(listener) }()
	t.Cleanup(r.Stop)
	return r
}

// Endpoint returns the endpoint of the runtime.
func (r *Runtime) Endpoint() string { return "unix://" + r.socket }

// Stop stops the runtime, even in the middle of an answer. A second call does nothing.
func (r *Runtime) Stop() {
	r.server.Stop()
	_ = r.listener.Close() // the server might not have it yet
}

// Add adds sandboxes.
func (r *Runtime) Add(sandboxes ...census.Sandbox) {
	for _, s := range sandboxes {
		state := runtimeapi.PodSandboxState_SANDBOX_NOTREADY
		if s.Ready {
			state = runtimeapi.PodSandboxState_SANDBOX_READY
		}
		r.AddItems(&runtimeapi.PodSandbox{
			Id: s.ID, State: state, CreatedAt: 1,
			Metadata: &runtimeapi.PodSandboxMetadata{Namespace: s.Pod.Namespace, Name: s.Pod.Name, Uid: s.UID},
		})
	}
}

// AddItems adds sandboxes exactly as the runtime returns them, even impossible ones.
func (r *Runtime) AddItems(items ...*runtimeapi.PodSandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sandboxes = append(r.sandboxes, items...)
}

// Remove removes the sandboxes with these IDs, as the kubelet does once their pods are gone.
func (r *Runtime) Remove(ids ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sandboxes = slices.DeleteFunc(r.sandboxes, func(s *runtimeapi.PodSandbox) bool { return slices.Contains(ids, s.GetId()) })
}

// OnList sets a hook that runs at the beginning of each list of sandboxes. An error of the
// hook is the answer, with its gRPC code if it has one. nil removes the hook.
func (r *Runtime) OnList(hook func(ctx context.Context) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hook = hook
}

// Lists returns how many lists of sandboxes were asked for.
func (r *Runtime) Lists() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lists
}

// A service answers requests to a runtime.
type service struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	r *Runtime
}

// Version implements runtimeapi.RuntimeServiceServer.
func (service) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "critest", RuntimeVersion: "v1.2.3", RuntimeApiVersion: "v1"}, nil
}

// ListPodSandbox implements runtimeapi.RuntimeServiceServer. It has no filters.
func (s service) ListPodSandbox(ctx context.Context, q *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	s.r.mu.Lock()
	s.r.lists++
	hook := s.r.hook
	s.r.mu.Unlock()
	if hook != nil {
		if err := hook(ctx); err != nil {
			return nil, err
		}
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if q.GetFilter() != nil {
		return nil, status.Error(codes.InvalidArgument, "critest has no filters")
	}
	return &runtimeapi.ListPodSandboxResponse{Items: slices.Clone(s.r.sandboxes)}, nil
}
