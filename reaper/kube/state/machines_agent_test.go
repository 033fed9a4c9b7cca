package state

import (
	"testing"
	"time"
)

// Promise 2. Only an agent in the guest knows all addresses of the guest.
func TestMachineReportsAllAddressesOnlyByItsAgent(t *testing.T) {
	const (
		connected = `"conditions": [{"type": "Ready", "status": "True"}, {"type": "AgentConnected", "status": "True"}]`
		told      = `{"name": "lan", "ipAddress": "10.2.0.1", "ipAddresses": ["10.2.0.1"], "infoSource": "domain, guest-agent"}`
		ofPod     = `{"name": "default", "ipAddress": "10.1.0.1", "ipAddresses": ["10.1.0.1"], "infoSource": "domain"}`
		untold    = `{"name": "lan", "infoSource": "domain, guest-agent"}`
	)
	for name, tt := range map[string]struct {
		status string
		want   bool
	}{
		"nothing is known":                      {``, false},
		"no agent":                              {`"phase": "Running", "interfaces": [` + ofPod + `, {"name": "lan", "infoSource": "domain"}]`, false},
		"an agent":                              {connected + `, "interfaces": [` + told + `]`, true},
		"an agent that names no interface":      {connected, false},
		"an agent that is not connected":        {`"conditions": [{"type": "AgentConnected", "status": "False"}], "interfaces": [` + told + `]`, false},
		"an agent that tells of one interface":  {connected + `, "interfaces": [` + told + `, ` + ofPod + `]`, false},
		"an agent that has told no address yet": {connected + `, "interfaces": [` + told + `, ` + untold + `]`, false},
		"a KubeVirt that names no source":       {connected + `, "interfaces": [{"name": "lan", "ipAddress": "10.2.0.1"}]`, false},
		"a guest that has shut down":            {`"phase": "Succeeded"`, true},
		"a machine that failed":                 {`"phase": "Failed"`, false},
	} {
		m := readMachine([]byte(`{"metadata": {"name": "a", "creationTimestamp": "2026-11-20T12:00:00Z"}, "status": {` + tt.status + `}}`))
		if m.Reported != tt.want {
			t.Errorf("%s: all addresses are reported: %v, want %v", name, m.Reported, tt.want)
		}
		if want := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC); !m.Created.Equal(want) {
			t.Errorf("%s: created at %v, want %v", name, m.Created, want)
		}
	}
	if m := readMachine([]byte(`{"metadata": {"name": "a", "creationTimestamp": "then"}}`)); !m.Created.IsZero() || m.Name != "a" {
		t.Errorf("%+v, want no time", m)
	}
}
