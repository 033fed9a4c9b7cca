package kit_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit"
)

func TestMain(m *testing.M) { kit.Main(m, kit.Options{Sets: []kit.Set{kit.Calico}}) }
