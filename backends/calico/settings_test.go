package calico_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/calico"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

var known = plugin.Known([]plugin.Plugin{calico.Plugin()})

const (
	header  = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\n"
	isNull  = "Required value: must not be null; leave the field out for its default"
	isEmpty = "Required value: must not be empty"
)

func TestRefusalsOfCalico(t *testing.T) {
	for _, tt := range []struct {
		name, yaml string
		want       []string // after backends.calico.
	}{
		{"unknown datastore", "datastore: etcd",
			[]string{`datastore: Unsupported value: "etcd": supported values: "auto", "kubernetes", "etcdv3"`}},
		{"empty datastore", "datastore: ''", []string{"datastore: " + isEmpty}},
		{"null datastore", "datastore:", []string{"datastore: " + isNull}},
		{"password in the place of the datastore", "datastore: https://root:hunter2@a:1",
			[]string{`datastore: Unsupported value: "https://...@a:1": supported values: "auto", "kubernetes", "etcdv3"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			indented := strings.ReplaceAll("\n"+tt.yaml, "\n", "\n    ")
			_, err := policy.Load([]byte(header+"backends:\n  calico:"+indented), known)
			for i := range tt.want {
				tt.want[i] = "backends.calico." + tt.want[i]
			}
			wantRefusal(t, err, tt.want...)
		})
	}
}

// A policy chooses no endpoint, no credential and no file.
func TestPolicyDoesNotSayHowEtcdIsReached(t *testing.T) {
	const want = "backends.calico.etcd: Forbidden: unknown field"
	for _, etcd := range []string{
		"hunter2", "{endpoints: ['http://a:1'], username: u, passwordFile: /etc/shadow}", "{certFile: /c, keyFile: /k}",
	} {
		_, err := policy.Load([]byte(header+"backends: {calico: {datastore: etcdv3, etcd: "+etcd+"}}"), known)
		wantRefusal(t, err, want)
	}
}

// wantRefusal fails the test unless err is an *Error with exactly these messages.
func wantRefusal(t *testing.T, err error, messages ...string) {
	t.Helper()
	var refusal *policy.Error
	if !errors.As(err, &refusal) {
		t.Fatalf("Load: %v, want an *Error", err)
	}
	if diff := cmp.Diff(messages, refusal.Messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}
