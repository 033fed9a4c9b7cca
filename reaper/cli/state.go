package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// stateTimeout limits the look at the state namespace: it is advice, and a server that
// does not answer is told of by the run.
const stateTimeout = 5 * time.Second

// checkState returns an error if a command that writes has no state namespace, and
// warnings for the report: another command has none, or ledgers and locks exist elsewhere.
// What it may not read, it does not tell.
func checkState(ctx context.Context, c clients, namespace string, writes bool, logger *slog.Logger) (warnings []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	missing := state.CheckNamespace(ctx, c.core, namespace)
	others, unread := state.OtherStates(ctx, c.raw, namespace)
	if unread != nil {
		logger.Debug("cannot tell whether other namespaces have a state", "err", unread)
	}
	if len(others) > 0 {
		warnings = append(warnings, fmt.Sprintf("ip-reaper also has a ledger or a lock in namespace %s, and this command uses %s: "+
			"name the right one with --state-namespace, and delete the others", printable.Some(others), namespace))
	}
	var input *ipam.InputError
	switch {
	case !errors.As(missing, &input):
		return warnings, nil
	case writes:
		return nil, ipam.BadInput(input.Err, strings.Join(append(warnings, input.Hint), "; "))
	}
	warning := fmt.Sprintf("%v, so no memory of earlier runs was read, and nothing can be released: %s", input, input.Hint)
	return append([]string{warning}, warnings...), nil
}
