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

// known has other backends beside Calico's.
var known = append(plugin.Known([]plugin.Plugin{calico.Plugin()}), policy.Known{Name: "overlapping"}, policy.Known{Name: "whereabouts"})

const (
	header   = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\n"
	isNull   = "Required value: must not be null; leave the field out for its default"
	isEmpty  = "Required value: must not be empty"
	noString = "must be a string, in quotes if YAML takes it for something else"
	noURL    = "Invalid value: must be http://host:port or https://host:port, and nothing else"
	hasUser  = "Invalid value: must not have a user or a password; there are username and passwordFile"
	ofCalico = "Forbidden: only the backend calico has it"
)

func TestSettingsOfCalicoMayBeLeftOut(t *testing.T) {
	for _, tt := range []struct {
		yaml string
		want calico.Settings
	}{
		{"{}", calico.Settings{}},
		{"{datastore: auto}", calico.Settings{Datastore: calico.DatastoreAuto}},
		{"{datastore: kubernetes}", calico.Settings{Datastore: calico.DatastoreKubernetes}},
		{"{datastore: kubernetes, etcd: {}}", calico.Settings{Datastore: calico.DatastoreKubernetes}},
		{"{datastore: etcdv3}", calico.Settings{Datastore: calico.DatastoreEtcd}},
		{"{etcd: {username: a}}", calico.Settings{Etcd: calico.EtcdOptions{Username: "a"}}},
		{"{datastore: auto, etcd: {caFile: a}}",
			calico.Settings{Datastore: calico.DatastoreAuto, Etcd: calico.EtcdOptions{CAFile: "a"}}},
		{"{etcd: {certFile: a, keyFile: b}}", calico.Settings{Etcd: calico.EtcdOptions{CertFile: "a", KeyFile: "b"}}},
		{"{etcd: {endpoints: ['http://10.0.0.1:1', 'https://ETCD_0.a-b:65535', 'https://[::ffff:10.0.0.1]:80']}}",
			calico.Settings{Etcd: calico.EtcdOptions{
				Endpoints: []string{"http://10.0.0.1:1", "https://ETCD_0.a-b:65535", "https://[::ffff:10.0.0.1]:80"},
			}}},
	} {
		t.Run(tt.yaml, func(t *testing.T) {
			p, err := policy.Load([]byte(header+"backends: {calico: "+tt.yaml+"}"), known)
			if diff := cmp.Diff(&tt.want, p.Backends["calico"].Settings); err != nil || diff != "" {
				t.Errorf("Load: %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestRefusalsOfCalico(t *testing.T) {
	for _, tt := range []struct {
		name, yaml string
		want       []string // after backends[calico].
	}{
		{"unknown datastore", "datastore: etcd",
			[]string{`datastore: Unsupported value: "etcd": supported values: "auto", "kubernetes", "etcdv3"`}},
		{"datastore in another case", "datastore: Kubernetes",
			[]string{`datastore: Unsupported value: "Kubernetes": supported values: "auto", "kubernetes", "etcdv3"`}},
		{"empty datastore", "datastore: ''", []string{"datastore: " + isEmpty}},
		{"null datastore", "datastore:", []string{"datastore: " + isNull}},
		{"etcd with kubernetes", "datastore: kubernetes\netcd: {username: a}",
			[]string{"etcd: Forbidden: must not be set where the datastore is kubernetes"}},
		{"all mistakes of etcd with kubernetes", "datastore: kubernetes\netcd: {endpoints: [a], keyFile: a}", []string{
			"etcd: Forbidden: must not be set where the datastore is kubernetes",
			"etcd.endpoints[0]: " + noURL,
			"etcd.certFile: Required value: must be set where keyFile is",
		}},
		{"null etcd", "etcd:", []string{"etcd: " + isNull}},
		{"password", "etcd: {password: hunter2}", []string{
			"etcd.password: Forbidden: unknown field, known are endpoints, username, passwordFile, caFile, certFile, keyFile; " +
				"a policy is no place for a password: name a file that has it in passwordFile, or set ETCD_PASSWORD"}},
		{"field in another case", "etcd: {cafile: a}", []string{
			"etcd.cafile: Forbidden: unknown field, known are endpoints, username, passwordFile, caFile, certFile, keyFile"}},

		{"no endpoints", "etcd: {endpoints: []}", []string{
			"etcd.endpoints: Required value: must have an endpoint; leave the field out for those of ETCD_ENDPOINTS"}},
		{"endpoints in one string", "etcd: {endpoints: 'https://a:1,https://b:1'}",
			[]string{"etcd.endpoints: Invalid value: must be a list"}},
		{"endpoints in one item", "etcd: {endpoints: ['https://a:1,https://b:1']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"hosts in one item", "etcd: {endpoints: ['https://a:1,b:1']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"empty endpoint", "etcd: {endpoints: ['']}", []string{"etcd.endpoints[0]: " + isEmpty}},
		{"no scheme", "etcd: {endpoints: ['https://a:1', 'a:1']}", []string{"etcd.endpoints[1]: " + noURL}},
		{"another scheme", "etcd: {endpoints: ['unix://a:1']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"scheme in upper case", "etcd: {endpoints: ['HTTPS://a:1']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"no host", "etcd: {endpoints: ['https://:1']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"no port", "etcd: {endpoints: ['https://a']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"empty port", "etcd: {endpoints: ['https://a:']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"port 0", "etcd: {endpoints: ['https://a:0']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"port with a leading 0", "etcd: {endpoints: ['https://a:02379']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"port too large", "etcd: {endpoints: ['https://a:65536']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"port by its name", "etcd: {endpoints: ['https://a:etcd']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"slash", "etcd: {endpoints: ['https://a:1/']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"path", "etcd: {endpoints: ['https://a:1/v3']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"query", "etcd: {endpoints: ['https://a:1?b=c']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"fragment", "etcd: {endpoints: ['https://a:1#b']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"line break", `etcd: {endpoints: ["https://a:1\n"]}`, []string{"etcd.endpoints[0]: " + noURL}},
		{"IPv6 without brackets", "etcd: {endpoints: ['https://fd00::1:2379']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"IPv4 in brackets", "etcd: {endpoints: ['https://[10.0.0.1]:2379']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"no IPv6", "etcd: {endpoints: ['https://[fd00:::1]:2379']}", []string{"etcd.endpoints[0]: " + noURL}},
		{"user", "etcd: {endpoints: ['https://hunter2@a:1']}", []string{"etcd.endpoints[0]: " + hasUser}},
		{"user and password", "etcd: {endpoints: ['https://root:hunter2@a:1']}", []string{"etcd.endpoints[0]: " + hasUser}},
		{"password without scheme", "etcd: {endpoints: ['root:hunter2@a:1']}", []string{"etcd.endpoints[0]: " + hasUser}},
		{"password with a slash", "etcd: {endpoints: ['https://root:hun/ter2@a:1']}", []string{"etcd.endpoints[0]: " + hasUser}},
		{"password and no host", "etcd: {endpoints: ['https://root:hunter2']}", []string{"etcd.endpoints[0]: " + noURL}},

		{"password in the place of endpoints", "etcd: {endpoints: 'root:hunter2@a:1'}",
			[]string{"etcd.endpoints: Invalid value: must be a list"}},
		{"password in the place of etcd", "etcd: 'root:hunter2@a:1'", []string{"etcd: Invalid value: must be a mapping"}},
		{"password in the place of its file", "etcd: {username: root, passwordFile: 123456}",
			[]string{"etcd.passwordFile: Invalid value: " + noString}},
		{"password in the place of the datastore", "datastore: https://root:hunter2@a:1",
			[]string{`datastore: Unsupported value: "https://...@a:1": supported values: "auto", "kubernetes", "etcdv3"`}},

		{"password without user", "etcd: {passwordFile: a}",
			[]string{"etcd.username: Required value: must be set where passwordFile is"}},
		{"certificate without key", "etcd: {certFile: a}",
			[]string{"etcd.keyFile: Required value: must be set where certFile is"}},
		{"key without certificate", "etcd: {keyFile: a}",
			[]string{"etcd.certFile: Required value: must be set where keyFile is"}},
		{"mistaken user is a user", "etcd: {username: 007, passwordFile: a}",
			[]string{"etcd.username: Invalid value: " + noString}},
		{"mistaken key is a key", "etcd: {certFile: a, keyFile: ''}", []string{"etcd.keyFile: " + isEmpty}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			indented := strings.ReplaceAll("\n"+tt.yaml, "\n", "\n    ")
			_, err := policy.Load([]byte(header+"backends:\n  calico:"+indented), known)
			for i := range tt.want {
				tt.want[i] = "backends[calico]." + tt.want[i]
			}
			wantRefusal(t, err, tt.want...)
		})
	}
}

func TestOnlyCalicoHasADatastore(t *testing.T) {
	for _, tt := range []struct {
		name, yaml string
		want       []string
	}{
		{"datastore", "whereabouts: {datastore: auto}", []string{"backends[whereabouts].datastore: " + ofCalico}},
		{"etcd", "overlapping: {etcd: {username: a}}", []string{"backends[overlapping].etcd: " + ofCalico}},
		{"no endpoints", "overlapping: {etcd: {endpoints: []}}", []string{"backends[overlapping].etcd: " + ofCalico}},
		{"both, mistaken", "whereabouts: {datastore: etcd, etcd: {certFile: a}}", []string{
			"backends[whereabouts].datastore: " + ofCalico,
			"backends[whereabouts].etcd: " + ofCalico,
		}},
		{"an unknown backend", "Calico: {datastore: auto}", []string{
			"backends[Calico].datastore: " + ofCalico,
			`backends[Calico]: Unsupported value: "Calico": supported values: "calico", "overlapping", "whereabouts"`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := policy.Load([]byte(header+"backends: {"+tt.yaml+"}"), known)
			wantRefusal(t, err, tt.want...)
		})
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
