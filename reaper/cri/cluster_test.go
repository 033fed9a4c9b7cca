package cri

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/cri/critest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Promise 2: without an API server, the lists are empty and a pod is Unknown.
func TestNodeWithoutAnAPIServer(t *testing.T) {
	runtime := critest.Start(t)
	runtime.Add(sandbox(1, true))
	c := Cluster(open(t, runtime.Endpoint()), nil, "", nil, nil)
	living, err := census.Take(t.Context(), c, census.Scope{StatefulSets: true, Nodes: true})
	if err != nil || living.Size() != 0 {
		t.Errorf("TakeCensus = %d pods, %v, want none", living.Size(), err)
	}
	_, presence, err := c.Pod(t.Context(), sandbox(1, true).Pod)
	if presence != census.Unknown || !errors.Is(err, ipam.ErrRefused) {
		t.Errorf("Pod = %v, %v, want that it is unknown, and another request would not help", presence, err)
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if _, err := census.Take(ctx, c, census.Scope{}); err == nil {
		t.Error("a census was taken after the end of the context")
	}
}

// Promise 2, 7: a node that keeps no attachments lists its sandboxes, and the census says so. Any other
// error is no list.
func TestNodeThatKeepsNoAttachments(t *testing.T) {
	none := ipam.Worded("none of A, B exists", ipam.ErrNotInstalled)
	for _, tt := range []struct {
		name      string
		sandboxes []census.Sandbox
		err       error
		want      string
		failed    bool
	}{
		{"it keeps none", []census.Sandbox{sandbox(1, true)}, none, "none of A, B exists", false},
		{"it keeps none, and has no sandboxes", nil, none, "", false},
		{"it keeps them", []census.Sandbox{sandbox(1, true)}, nil, "", false},
		{"they cannot be read", []census.Sandbox{sandbox(1, true)}, os.ErrPermission, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runtime := critest.Start(t)
			runtime.Add(tt.sandboxes...)
			c := Cluster(open(t, runtime.Endpoint()), nil, "", nil, func(context.Context, []string) ([]ipam.Attachment, error) { return nil, tt.err })
			living, err := census.Take(t.Context(), c, census.Scope{})
			if got := living.Unclaimed(); got != tt.want || (err != nil) != tt.failed || len(living.Sandboxes()) != len(tt.sandboxes) && !tt.failed {
				t.Errorf("the census says %q, has %d sandboxes, and %v, want %q", got, len(living.Sandboxes()), err, tt.want)
			}
		})
	}
}

// Promise 1: the sandboxes of another runtime, and the pods of another node, prove nothing.
func TestRuntimeAndNodeMustBeThoseOfTheKubelet(t *testing.T) {
	own := sandbox(1, true)
	for _, tt := range []struct {
		name string
		pods []census.Pod // in the API server; nil: it is not asked
		self string
		want string // a part of the error; empty: no error
	}{
		{"the pod's own sandbox is there", nil, own.UID, ""},
		{"the pod's own sandbox is not there", nil, "other", "does not have the sandbox of this pod"},
		{"a pod has the name of a sandbox", []census.Pod{{Ref: own.Pod, UID: "mirror"}}, "", ""},
		{"a pod has the UID of a sandbox", []census.Pod{{Ref: ipam.PodRef{Namespace: "a", Name: "b"}, UID: own.UID}}, "", ""},
		{"the API server has other pods", []census.Pod{{Ref: ipam.PodRef{Namespace: "a", Name: "b"}, UID: "c"}}, "", "no pod of any sandbox"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runtime := critest.Start(t)
			runtime.Add(own, sandbox(2, false))
			var pods census.Cluster
			if tt.pods != nil {
				all := &backendtest.Pods{}
				all.Add(tt.pods...)
				pods = all
			}
			_, err := census.Take(t.Context(), Cluster(open(t, runtime.Endpoint()), pods, tt.self, nil, nil), census.Scope{})
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("TakeCensus = %v, want %q", err, tt.want)
			}
		})
	}
}

// Promise 1: without a pod and an API server, the kubelet's folder shows whose the runtime is,
// if it has any pods.
func TestRuntimeHasPodsOfTheKubelet(t *testing.T) {
	own := sandbox(1, false)
	vouching := &backendtest.Pods{}
	vouching.Add(census.Pod{Ref: own.Pod, UID: own.UID})
	for _, tt := range []struct {
		name      string
		uids      []string // folders of the kubelet's pods
		sandboxes []census.Sandbox
		pods      census.Cluster
		self      string
		refused   bool
	}{
		{"one of its pods has a sandbox", []string{"other", own.UID}, []census.Sandbox{own, sandbox(2, true)}, nil, "", false},
		{"none of its pods has one", []string{"other", "uid"}, []census.Sandbox{own, sandbox(2, true)}, nil, "", true},
		{"it has no pods", nil, []census.Sandbox{own}, nil, "", false},
		{"the own pod vouches", []string{"other"}, []census.Sandbox{own}, nil, own.UID, false},
		{"the API server vouches", []string{"other"}, []census.Sandbox{own}, vouching, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runtime := critest.Start(t)
			runtime.Add(tt.sandboxes...)
			folder := t.TempDir()
			for _, uid := range tt.uids {
				if err := os.Mkdir(filepath.Join(folder, uid), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			kubelets := []string{filepath.Join(folder, "none"), folder}
			_, err := Cluster(open(t, runtime.Endpoint()), tt.pods, tt.self, kubelets, nil).Sandboxes(t.Context())
			input := (*ipam.InputError)(nil)
			if refused := errors.As(err, &input); refused != tt.refused || !refused && err != nil {
				t.Errorf("Sandboxes: %v, want that it is refused: %t", err, tt.refused)
			}
		})
	}
}

// Promise 2: a folder that cannot be read may have the pods that prove the runtime wrong.
func TestKubeletThatCannotBeReadIsAnError(t *testing.T) {
	runtime := critest.Start(t)
	runtime.Add(sandbox(1, true))
	if _, err := Cluster(open(t, runtime.Endpoint()), nil, "", []string{put(t, "pods", "")}, nil).Sandboxes(t.Context()); err == nil {
		t.Error("the sandboxes are believed")
	}
}

// Promise 1: a sandbox whose ADD ends while the sandboxes are listed has its entry before the runtime
// lists it, so the entries are read afterwards. Promise 2: without them, there is no list.
func TestAttachmentsAreReadAfterTheSandboxes(t *testing.T) {
	runtime := critest.Start(t)
	runtime.Add(sandbox(1, true), sandbox(2, false))
	listed := false
	runtime.OnList(func(context.Context) error {
		listed = true
		return nil
	})
	var failure error
	entry := ipam.Attachment{Sandbox: sandbox(2, false).ID, Interface: "eth0", File: "entry"}
	c := Cluster(open(t, runtime.Endpoint()), nil, "", nil, func(_ context.Context, ids []string) ([]ipam.Attachment, error) {
		if !listed || len(ids) != 2 {
			t.Errorf("the attachments of %v are read after the sandboxes: %v", ids, listed)
		}
		return []ipam.Attachment{entry}, failure
	})
	all, err := c.Sandboxes(t.Context())
	if err != nil || len(all) != 2 || len(all[0].Attachments) != 0 || len(all[1].Attachments) != 1 || all[1].Attachments[0].File != "entry" {
		t.Errorf("Sandboxes = %+v, %v", all, err)
	}
	failure = os.ErrPermission
	if _, err := c.Sandboxes(t.Context()); !errors.Is(err, os.ErrPermission) {
		t.Errorf("Sandboxes: %v, want that what the cache says is missing", err)
	}
}

// Promise 1: only the kernel itself says in which boot it is. A file that a container has in its place
// differs from what a pod in that container sees.
func TestBootIsThatOfTheKernel(t *testing.T) {
	id := bootIn(bootFile)
	if !bootID.MatchString(id) || bootIn(bootFile) != id {
		t.Errorf("the boot is %q", id)
	}
	for name, file := range map[string]string{
		"a file of another file system": put(t, "boot_id", id+"\n"), "another text of the kernel": "/proc/sys/kernel/ostype", "none": filepath.Join(t.TempDir(), "none"),
	} {
		if got := bootIn(file); got != "" {
			t.Errorf("%s: the boot is %q", name, got)
		}
	}
}
