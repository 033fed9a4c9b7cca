package calico

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
)

// The real datastores pass the same suite in integration/.
func TestConformance(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			backendtest.Run(t, func(t *testing.T) backendtest.Store { return newPlugin(newFakeStore(t, s)) })
		})
	}
}
