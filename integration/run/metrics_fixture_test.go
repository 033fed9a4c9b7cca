package run_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A metricsFixture is a fixture with a gateway.
type metricsFixture struct {
	*fixture
	gateway *gateway
	trusted string // a file with the certificates that the reaper trusts; those of the system if empty
}

func newMetricsFixture(t *testing.T) *metricsFixture {
	t.Helper()
	f := &metricsFixture{fixture: newFixture(t), gateway: startGateway(t)}
	f.network = wide
	return f
}

// push starts the reaper with a policy. Figures go to the URL.
func (f *metricsFixture) push(pushURL, policy string, args ...string) *reap.Process {
	f.Helper()
	f.env = []string{"IP_REAPER_PUSH_URL=" + pushURL, "SSL_CERT_FILE=" + f.trusted}
	return f.start(policy, args...)
}

// reap runs the reaper with a policy, and figures go to the gateway.
func (f *metricsFixture) reap(code int, policy string, args ...string) *reap.Report {
	f.Helper()
	return f.push(f.gateway.url, policy, args...).EndT(f, code).Report
}
