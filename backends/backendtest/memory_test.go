package backendtest_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	backendtest.Run(t, func(*testing.T) backendtest.Store { return backendtest.NewMemory("memory") })
}

func TestForgetfulMemory(t *testing.T) {
	t.Parallel()
	backendtest.Run(t, func(*testing.T) backendtest.Store { return backendtest.NewForgetful("forgetful") })
}

func TestHandledMemory(t *testing.T) {
	t.Parallel()
	backendtest.Run(t, func(*testing.T) backendtest.Store { return backendtest.NewHandled("handled") })
}

func TestTwoStepMemory(t *testing.T) {
	t.Parallel()
	backendtest.Run(t, func(*testing.T) backendtest.Store { return backendtest.NewTwoStep("two-step") })
}

func TestWarrantsOpenTheStore(t *testing.T) {
	m := backendtest.NewMemory("memory")
	var rs []ipam.Allocation
	for _, name := range []string{"gone-1", "gone-2"} {
		r, err := m.Reserve("a", ipam.Owner{Pod: ipam.PodRef{Namespace: "default", Name: name}, Sandbox: name})
		if err != nil {
			t.Fatal(err)
		}
		rs = append(rs, r)
	}
	b := m.Backend()
	for i, err := range b.Release(t.Context(), backendtest.Warrants(t, b, &backendtest.Pods{}, rs...)) {
		if err != nil {
			t.Errorf("release %s: %v", rs[i].IP, err)
		}
	}
	if left, err := m.Snapshot(); len(left) != 0 || err != nil {
		t.Errorf("left are %v, %v", left, err)
	}
}
