package cri

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/cri/critest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// open connects to a runtime until the end of the test.
func open(t *testing.T, endpoint string) *Client {
	t.Helper()
	c, err := Open(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// sandbox returns the nth sandbox of a node.
func sandbox(n int, ready bool) census.Sandbox {
	id := strconv.Itoa(n)
	return census.Sandbox{ID: strings.Repeat(id, 64)[:64], Pod: ipam.PodRef{Namespace: "shop", Name: "web-" + id}, UID: "uid-" + id, Ready: ready}
}

// Promise 1: a sandbox that is not ready keeps its address until the runtime removes it.
func TestSandboxesOfEveryStateAreListed(t *testing.T) {
	runtime := critest.Start(t)
	c := open(t, runtime.Endpoint())
	list := func(want ...census.Sandbox) {
		t.Helper()
		got, err := c.Sandboxes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append([]census.Sandbox{}, want...), got); diff != "" {
			t.Errorf("sandboxes (-want +got):\n%s", diff)
		}
	}
	list()
	runtime.Add(sandbox(1, true), sandbox(2, false), sandbox(3, true))
	list(sandbox(1, true), sandbox(2, false), sandbox(3, true))
	runtime.Remove(sandbox(1, true).ID, sandbox(3, true).ID)
	list(sandbox(2, false))
	runtime.AddItems(&runtimeapi.PodSandbox{Id: "without-a-pod"})
	list(sandbox(2, false), census.Sandbox{ID: "without-a-pod", Ready: true})
}

// Promise 2: an answer that no runtime gives decides nothing.
func TestListThatCannotBeIsAnError(t *testing.T) {
	large := &runtimeapi.PodSandbox{Id: "large", Annotations: map[string]string{"a": strings.Repeat("x", maxAnswer)}}
	for name, tt := range map[string]struct {
		items []*runtimeapi.PodSandbox
		want  string
	}{
		"no ID":     {[]*runtimeapi.PodSandbox{{Id: "1"}, {}}, "a sandbox without an ID"},
		"twice":     {[]*runtimeapi.PodSandbox{{Id: "1"}, {Id: "2"}, {Id: "1", State: 1}}, `the sandbox "1" twice`},
		"too large": {[]*runtimeapi.PodSandbox{{Id: "1"}, large}, "at most 16 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			runtime := critest.Start(t)
			runtime.AddItems(tt.items...)
			got, err := open(t, runtime.Endpoint()).Sandboxes(t.Context())
			if got != nil || !errors.Is(err, ipam.ErrRefused) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), runtime.Endpoint()) {
				t.Errorf("Sandboxes = %d, %v, want no list, and an error with %q", len(got), err, tt.want)
			}
		})
	}
}

// A node may have thousands of sandboxes, and gRPC reads only 4 MiB by default.
func TestLargeListIsRead(t *testing.T) {
	runtime := critest.Start(t)
	const many = 3000
	for n := range many {
		runtime.AddItems(&runtimeapi.PodSandbox{Id: strconv.Itoa(n), Annotations: map[string]string{"a": strings.Repeat("x", 5000)}})
	}
	got, err := open(t, runtime.Endpoint()).Sandboxes(t.Context())
	if err != nil || len(got) != many {
		t.Errorf("Sandboxes = %d, %v, want %d", len(got), err, many)
	}
}

// Promise 2: a runtime that fails has not answered. The error says whether a second look may
// help.
func TestFailureOfTheRuntimeIsAnError(t *testing.T) {
	for _, tt := range []struct {
		code    codes.Code
		refused bool
		want    string
	}{
		{codes.Unavailable, false, "ListPodSandbox: not yet"}, // a runtime that starts
		{codes.Unimplemented, true, "does not serve version 1 of the CRI"},
		{codes.PermissionDenied, true, "not yet"},
	} {
		t.Run(tt.code.String(), func(t *testing.T) {
			runtime := critest.Start(t)
			runtime.Add(sandbox(1, true))
			c := open(t, runtime.Endpoint())
			runtime.OnList(func(context.Context) error { return status.Error(tt.code, "not yet") })
			got, err := c.Sandboxes(t.Context())
			if got != nil || err == nil || errors.Is(err, ipam.ErrRefused) != tt.refused || !strings.Contains(err.Error(), tt.want) ||
				!strings.HasPrefix(err.Error(), "container runtime at "+runtime.Endpoint()) || strings.Contains(err.Error(), "rpc error") {
				t.Errorf("Sandboxes = %v, %v, want an error with %q, refused: %v", got, err, tt.want, tt.refused)
			}
			runtime.OnList(nil)
			if got, err := c.Sandboxes(t.Context()); err != nil || len(got) != 1 {
				t.Errorf("Sandboxes after the failure = %v, %v, want one", got, err)
			}
		})
	}
}

// A run that waits for a runtime forever would hold its lock forever. The runtime also knows
// the deadline of a request, so that either side may end it first.
func TestRuntimeThatHangsIsGivenUp(t *testing.T) {
	runtime := critest.Start(t)
	c := open(t, runtime.Endpoint())
	runtime.OnList(func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	c.timeout = 50 * time.Millisecond
	if got, err := c.Sandboxes(t.Context()); got != nil || err == nil || errors.Is(err, ipam.ErrRefused) {
		t.Errorf("Sandboxes = %v, %v, want an error that may pass", got, err)
	}
	slow := errors.New("the look takes too long")
	canceled, end := context.WithCancelCause(t.Context())
	end(slow)
	if got, err := c.Sandboxes(canceled); got != nil || !errors.Is(err, context.Canceled) || !errors.Is(err, slow) {
		t.Errorf("Sandboxes = %v, %v, want that the context was canceled, and why", got, err)
	}
}

// Promise 2: a runtime that dies in the middle of its answer has not answered.
func TestRuntimeThatStopsIsAnError(t *testing.T) {
	runtime := critest.Start(t)
	runtime.Add(sandbox(1, true))
	c := open(t, runtime.Endpoint())
	begun := make(chan struct{})
	runtime.OnList(func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	})
	failed := make(chan error)
	go func() {
		_, err := c.Sandboxes(t.Context())
		failed <- err
	}()
	<-begun
	runtime.Stop()
	if err := <-failed; err == nil || errors.Is(err, ipam.ErrRefused) {
		t.Errorf("Sandboxes = %v, want an error that may pass", err)
	}
	if got, err := c.Sandboxes(t.Context()); got != nil || err == nil {
		t.Errorf("Sandboxes of a stopped runtime = %v, %v, want an error", got, err)
	}
}

// A wrong endpoint is reported before the run begins, as a mistake with a hint.
func TestEndpointWithoutARuntimeIsTold(t *testing.T) {
	folder, err := os.MkdirTemp("", "cri") //nolint:usetesting // see critest.Start
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	at := func(name string) string { return filepath.Join(folder, name) }
	listen := func(name string) net.Listener {
		l, err := net.Listen("unix", at(name))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	left := listen("left.sock")
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := errors.Join(left.Close(), os.WriteFile(at("file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	noCRI := grpc.NewServer() // as containerd without its CRI plugin
	other := listen("other.sock")
	go func() { _ = noCRI.Serve(other) }()
	t.Cleanup(noCRI.Stop)
	for _, tt := range []struct {
		endpoint, want string
		input          bool
	}{
		{"unix://" + at("nothing.sock"), "no such file", true},
		{"unix://" + at("left.sock"), "connection refused", true},
		{"unix://" + at("file"), "not a socket", true},
		{"unix://" + folder, "not a socket", true},
		{"unix://" + at("other.sock"), "does not serve version 1 of the CRI", false},
	} {
		c, err := Open(t.Context(), tt.endpoint)
		var input *ipam.InputError
		if c != nil || err == nil || !strings.Contains(err.Error(), tt.want) || errors.As(err, &input) != tt.input {
			t.Errorf("Open(%s) = %v, want %q", tt.endpoint, err, tt.want)
		}
	}
}
