package calico_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/calico"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// A policy names a datastore that exists. It chooses no endpoint, no credential and no file.
func TestRefusalsOfCalico(t *testing.T) {
	const (
		supported = `: supported values: "auto", "kubernetes", "etcdv3"`
		forbidden = "etcd: Forbidden: unknown field"
	)
	for settings, want := range map[string]string{
		"datastore: etcd":                       `datastore: Unsupported value: "etcd"` + supported,
		"datastore: 'https://root:hunter2@a:1'": `datastore: Unsupported value: "https://...@a:1"` + supported,
		"datastore: ''":                         "datastore: Required value: must not be empty",
		"etcd: hunter2":                         forbidden,
		"datastore: etcdv3, etcd: {endpoints: ['http://a:1'], username: u, passwordFile: /etc/shadow}": forbidden,
		"datastore: etcdv3, etcd: {certFile: /c, keyFile: /k}":                                         forbidden,
	} {
		text := "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\nbackends: {calico: {" + settings + "}}"
		_, err := policy.Load([]byte(text), plugin.Known([]plugin.Plugin{calico.Plugin()}))
		var refusal *policy.Error
		if !errors.As(err, &refusal) {
			t.Errorf("%s: %v, want an *Error", settings, err)
		} else if diff := cmp.Diff([]string{"backends.calico." + want}, refusal.Messages); diff != "" {
			t.Errorf("%s: messages (-want +got):\n%s", settings, diff)
		}
	}
}
