package calico_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/calico"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
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

// Promise 1. A shell may still have the variables of another cluster, whose addresses would go. In a
// pod, they come from the manifest.
func TestDatastoreThatIsOpened(t *testing.T) {
	const inAPI, inEtcd, etcd = "the Kubernetes API", "etcd https://e:2379", "ETCD_ENDPOINTS=https://e:2379"
	for _, tt := range []struct {
		name     string
		settings calico.Settings
		env      []string
		in, out  string // where it is in a pod and outside a cluster, or a part of the error
	}{
		{"nothing is named", calico.Settings{}, nil, inAPI, inAPI},
		{"endpoints", calico.Settings{}, []string{etcd}, inEtcd, "has ETCD_ENDPOINTS, but"},
		{"endpoints, and auto", calico.Settings{Datastore: calico.DatastoreAuto}, []string{etcd}, inEtcd, "has ETCD_ENDPOINTS, but"},
		{"a type", calico.Settings{}, []string{"DATASTORE_TYPE=kubernetes", etcd}, inAPI, "has DATASTORE_TYPE, ETCD_ENDPOINTS, but"},
		{"the other type", calico.Settings{}, []string{"DATASTORE_TYPE=etcdv3", etcd}, inEtcd, "has DATASTORE_TYPE, ETCD_ENDPOINTS, but"},
		{"a type alone", calico.Settings{}, []string{"DATASTORE_TYPE=etcdv3"}, "no etcd endpoints", "has DATASTORE_TYPE, but"},
		{"an unknown type", calico.Settings{}, []string{"DATASTORE_TYPE=files"}, `unknown datastore "files"`, "has DATASTORE_TYPE, but"},
		{"the policy names etcd", calico.Settings{Datastore: calico.DatastoreEtcd}, []string{"DATASTORE_TYPE=kubernetes", etcd}, inEtcd, inEtcd},
		{"the policy names the API", calico.Settings{Datastore: calico.DatastoreKubernetes}, []string{"DATASTORE_TYPE=etcdv3", etcd}, inAPI, inAPI},
	} {
		for _, inPod := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, in a pod %t", tt.name, inPod), func(t *testing.T) {
				env := plugin.Env{Client: new(rest.RESTClient), InPod: inPod, Getenv: func(name string) string {
					for _, variable := range tt.env {
						if value, ok := strings.CutPrefix(variable, name+"="); ok {
							return value
						}
					}
					return ""
				}}
				want := tt.out
				if inPod {
					want = tt.in
				}
				b, err := calico.Plugin().Open(t.Context(), env, &tt.settings)
				switch {
				case err != nil && !strings.Contains(err.Error(), want):
					t.Errorf("open: %v, want %q", err, want)
				case err == nil && b.(ipam.Locator).Locate().Where != want:
					t.Errorf("open: %s, want %q", b.(ipam.Locator).Locate().Where, want)
				}
				env.Off = true // it is opened nevertheless, whatever the variables say
				if _, err := calico.Plugin().Open(t.Context(), env, &tt.settings); err != nil {
					t.Errorf("open a backend that is off: %v", err)
				}
			})
		}
	}
}
