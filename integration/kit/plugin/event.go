package plugin

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// SandboxFailed returns the message of the event that the kubelet writes if an ADD fails that Multus delegated for a
// network: containerd and Multus put their words before those of the plugin.
func SandboxFailed(pod Pod, network string, err error) string {
	return fmt.Sprintf(`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "5f0c8d": `+
		`plugin type="multus" name="multus-cni-network" failed (add): [%s/%s/u1:%s]: error adding container to network %[3]q: %[4]s`,
		pod.Namespace, pod.Name, network, says(err))
}

// says returns the error of an ADD as libcni passes it on.
func says(err error) string {
	if of, is := errors.AsType[*Error](err); is {
		return of.Says()
	}
	return err.Error()
}

// QuotedT fails the test unless explain quotes of the event for a failed ADD what the plugin said, and no more. It
// returns that.
func QuotedT(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		t.Fatal("the ADD did not fail")
	}
	want := says(err)
	if got := report.PluginSays(SandboxFailed(Pod{"shop", "web"}, "lan", err)); got != want {
		t.Errorf("of the error of the plugin, %q is quoted, want\n%q", got, want)
	}
	return want
}
