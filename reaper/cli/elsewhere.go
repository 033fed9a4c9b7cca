package cli

import (
	"fmt"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// elsewhere says of each backend that the policy turns on, and that a run of this scope does
// not open, which run does. So a report does not pass it over in silence.
func elsewhere(w ioStreams, scope plugin.Scope, p policy.Policy) map[string]string {
	says := map[plugin.Scope]string{
		plugin.Node:    fmt.Sprintf("it is on the nodes: run %s node there", w.name()),
		plugin.Cluster: fmt.Sprintf("it is in the cluster: run %s run", w.name()),
	}
	found := make(map[string]string)
	for _, one := range w.backends {
		if one.Scope != scope && p.Backends[one.Name].Enabled == policy.On {
			found[one.Name] = says[one.Scope]
		}
	}
	return found
}
