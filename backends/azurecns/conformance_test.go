package azurecns

import (
	"os"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/azurecns/cnstest"
	"github.com/ip-reaper/ip-reaper/backends/backendtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	backendtest.Run(t, func(t *testing.T) backendtest.Store { return newNode(t, serve(t, cnstest.New()), false) })
}

// A CNS that keeps a record of the interfaces of each container.
func TestConformanceByContainer(t *testing.T) {
	t.Parallel()
	backendtest.Run(t, func(t *testing.T) backendtest.Store { return newNode(t, serve(t, cnstest.NewManaging()), true) })
}

// TestConformanceOfRealCNS runs the suite over the CNS at $AZURE_CNS, which must have 64 free
// addresses and no pods. The variable AZURE_CNS_KEYS is container if the CNS keeps a record of
// the interfaces of each container.
func TestConformanceOfRealCNS(t *testing.T) {
	address := os.Getenv("AZURE_CNS")
	if address == "" {
		t.Skip("AZURE_CNS is not set")
	}
	byContainer := os.Getenv("AZURE_CNS_KEYS") == "container"
	backendtest.Run(t, func(t *testing.T) backendtest.Store { return newNode(t, address, byContainer) })
}
