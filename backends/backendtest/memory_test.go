package backendtest_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
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
