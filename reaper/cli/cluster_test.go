package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// sent returns the headers that an API server gets, for a user of a kubeconfig and flags, and who is said
// to act.
func sent(t *testing.T, user string, flags ...string) (header http.Header, by string, err error) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		answer(w, []byte(`{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system"}}`))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "here",
		"clusters": [{"name": "prod", "cluster": {"server": %q, "insecure-skip-tls-verify": true}},
			{"name": "down", "cluster": {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": true}}],
		"users": [{"name": "jane", "user": %s}, {"name": "other", "user": {"token": "of-other"}}],
		"contexts": [{"name": "here", "context": {"cluster": "prod", "user": "jane"}}, {"name": "down", "context": {"cluster": "down", "user": "jane"}}]}`,
		server.URL, user)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var f clusterFlags
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.add(set)
	for i := range flags {
		flags[i] = strings.ReplaceAll(flags[i], "SERVER", server.URL)
	}
	if err := set.Parse(append(flags, "--kubeconfig", file)); err != nil {
		t.Fatal(err)
	}
	at, err := locate(f.kubeconfig, f.client, func(string) string { return "" })
	if err != nil {
		return nil, "", err
	}
	c, _, err := at.clients(1, time.Minute)
	if err != nil {
		return nil, "", err
	}
	_, err = c.core.Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	return header, at.user, err
}

// What kubectl can log in with, so can this program.
func TestCredentialsOfKubeconfigs(t *testing.T) {
	part := func(claims string) string { return base64.RawURLEncoding.EncodeToString([]byte(claims)) }
	token := part(`{"alg": "none"}`) + "." + part(`{"exp": 4102444800}`) + ".x"
	for _, tt := range []struct{ name, user, bearer, wrong string }{
		{"a token", `{"token": "secret"}`, "secret", ""},
		{"OIDC", `{"auth-provider": {"name": "oidc", "config": {"idp-issuer-url": "https://127.0.0.1:1", "client-id": "c", "id-token": "` + token + `"}}}`, token, ""},
		{"a credential plugin", `{"exec": {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": "/bin/sh", "args": ["-c",
			"echo '{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \"status\": {\"token\": \"made\"}}'"]}}`, "made", ""},
		{"a provider that is no more", `{"auth-provider": {"name": "gcp"}}`, "", `Please use the "gke-gcloud-auth-plugin"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			header, _, err := sent(t, tt.user)
			if (err != nil) != (tt.wrong != "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
				t.Fatalf("error %v, want %q", err, tt.wrong)
			}
			if got, _ := strings.CutPrefix(header.Get("Authorization"), "Bearer "); got != tt.bearer {
				t.Errorf("token %q, want %q", got, tt.bearer)
			}
		})
	}
}

// The flags of kubectl say the same here. A misspelt name has a hint.
func TestFlagsOfKubectl(t *testing.T) {
	for _, tt := range []struct {
		flags []string
		want  map[string][]string // headers
		wrong string
	}{
		{[]string{"--as", "joe", "--as-group", "a,b", "--as-group", "c", "--as-uid", "7"},
			map[string][]string{"Impersonate-User": {"joe"}, "Impersonate-Group": {"a,b", "c"}, "Impersonate-Uid": {"7"}}, ""},
		{[]string{"--user", "other"}, map[string][]string{"Authorization": {"Bearer of-other"}}, ""},
		{[]string{"--context", "down", "--cluster", "prod"}, nil, ""},
		{[]string{"--context", "down", "-s", "SERVER"}, nil, ""},
		{[]string{"--user", "othr"}, nil, "did you mean other?"},
		{[]string{"--cluster", "prot"}, nil, "did you mean prod?"},
		{[]string{"--context", "hre"}, nil, "did you mean here?"},
		{[]string{"--as-group", "a"}, nil, "without impersonating a user"},
	} {
		t.Run(strings.Join(tt.flags, " "), func(t *testing.T) {
			header, _, err := sent(t, `{"token": "secret"}`, tt.flags...)
			said := fmt.Sprint(err)
			if mistake := (*ipam.InputError)(nil); errors.As(err, &mistake) {
				said += " " + mistake.Hint
			}
			if (err != nil) != (tt.wrong != "") || !strings.Contains(said, tt.wrong) {
				t.Fatalf("error %s, want %q", said, tt.wrong)
			}
			for key, want := range tt.want {
				if diff := cmp.Diff(want, header[key]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", key, diff)
				}
			}
		})
	}
}

// What is said of who acts, and as whom, is what the API server is told, whether a flag or the kubeconfig
// says so.
func TestWhoActsAndAsWhom(t *testing.T) {
	const breakglass = `{"token": "secret", "as": "breakglass-admin", "as-groups": ["system:masters", "sre"]}`
	for _, tt := range []struct {
		name, user string
		flags      []string
		want, as   string
	}{
		{"nobody else", `{"token": "secret"}`, nil, "jane", ""},
		{"by the kubeconfig", breakglass, nil, "jane as breakglass-admin in system:masters, sre", "breakglass-admin"},
		{"by a flag", `{"token": "secret"}`, []string{"--as", "joe"}, "jane as joe", "joe"},
		{"by both", `{"token": "secret", "as": "breakglass-admin"}`, []string{"--as", "joe", "--as-group", "ops"}, "jane as joe in ops", "joe"},
		{"another user", breakglass, []string{"--user", "other"}, "other", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			header, by, err := sent(t, tt.user, tt.flags...)
			if err != nil {
				t.Fatal(err)
			}
			if by != tt.want || header.Get("Impersonate-User") != tt.as {
				t.Errorf("%q acts, and the API server is told of %q; want %q and %q", by, header.Get("Impersonate-User"), tt.want, tt.as)
			}
		})
	}
}

// Without a flag, a pod takes its service account.
func TestNoFlagOverridesTheServiceAccount(t *testing.T) {
	var f clusterFlags
	f.add(pflag.NewFlagSet("", pflag.ContinueOnError))
	if !reflect.ValueOf(f.client).IsZero() {
		t.Errorf("without flags, the overrides are %+v", f.client)
	}
}
