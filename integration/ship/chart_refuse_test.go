package ship_test

import (
	"strings"
	"testing"
)

// helm refuses a mistake in the values, and says where it is. It shows no password.
func TestWrongValuesAreRefused(t *testing.T) {
	const etcd = "backends: {calico: {datastore: etcdv3, etcd: {endpoints: ["
	for _, tt := range []struct {
		name, values string
		want         string
	}{
		{"unknown mode", "mode: run", "at '/mode': value must be one of 'plan', 'release'"},
		{"two runs at once", "concurrencyPolicy: Allow", "at '/concurrencyPolicy'"},
		{"unknown value", "replicas: 1", "additional properties 'replicas' not allowed"},
		{"unknown field of the policy", "policy: {grace: 15m}", "at '/policy': additional properties 'grace' not allowed"},
		{"dryRun in the policy", "policy: {dryRun: false}", "policy.dryRun must not be set: set mode to plan for dry runs, or to release for"},
		{"dryRun in the environment", "extraEnv: [{name: IP_REAPER_DRY_RUN, value: \"false\"}]", "extraEnv has IP_REAPER_DRY_RUN: use mode"},
		{"backends in the policy", "policy: {backends: {}}", "policy.backends must not be set: set backends, which is beside policy"},
		{"unknown backend", "backends: {cilium: {enabled: true}}", "at '/backends': additional properties 'cilium' not allowed"},
		{"unknown fields", "backends: {whereabouts: {unknownFields: drop}}", "at '/backends/whereabouts/unknownFields'"},
		{"etcd without endpoints", "backends: {calico: {datastore: etcdv3}}", "etcdv3, and backends.calico.etcd.endpoints is empty: name"},
		{"endpoint without a scheme", etcd + `"etcd:2379"]}}}`, "at '/backends/calico/etcd/endpoints/0'"},
		{"certificate over http", etcd + `"https://a:2379", "http://b:2379"]}}}`, "has an http endpoint, and backends.calico.etcd.secretName is set"},
		{"password in a URL", "metrics: {pushURL: \"https://a:secret@pushgateway:9091\"}", "metrics.pushURL has a user in it: put the URL into a Secret"},
		{"two URLs", "metrics: {pushURL: \"http://pushgateway:9091\", pushURLSecret: {name: a}}", "metrics.pushURL and metrics.pushURLSecret.name are both set"},
		{"CAs from two places", "metrics: {caBundle: {configMap: a, secret: b}}", "metrics.caBundle.configMap and metrics.caBundle.secret are both set"},
		{"prefix that is too long", "fullnameOverride: " + strings.Repeat("a", 37), "at '/fullnameOverride': maxLength"},
		{"digest", "image: {digest: 0123}", "at '/image/digest'"},
		{"unknown field of the policy of nodes", "node: {policy: {grace: 15m}}", "at '/node/policy': additional properties 'grace' not allowed"},
		{"dryRun in the policy of nodes", "node: {policy: {dryRun: false}}", "node.policy.dryRun must not be set: set node.mode"},
		{"backends in the policy of nodes", "node: {policy: {backends: {}}}", "node.policy.backends must not be set: set node.backends"},
		{"backend of a cluster on nodes", "node: {backends: {calico: {}}}", "at '/node/backends': additional properties 'calico' not allowed"},
		{"unknown mode of nodes", "node: {mode: on}", "at '/node/mode'"},
		{"interval without a unit", "node: {every: 15}", "at '/node/every'"},
		{"folder that is no path", "node: {dataDirs: [networks]}", "at '/node/dataDirs/0'"},
		{"socket in the root folder", "node: {runtimeSocket: /crio.sock}", "at '/node/runtimeSocket'"},
		{"socket that is a URL", "node: {runtimeSocket: unix:///r/a.s}", "at '/node/runtimeSocket'"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := theRelease.render(t, values(t, tt.values))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("render: %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret@") {
				t.Errorf("the error has the password: %v", err)
			}
		})
	}
}
