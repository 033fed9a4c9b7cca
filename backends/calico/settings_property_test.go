package calico_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/backends/calico"
	"github.com/ip-reaper/ip-reaper/policy"
)

func TestMarshalledSettingsLoadAsThemselves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawSettings(t)
		p := policy.Default()
		p.Backends["calico"] = policy.Backend{Enabled: policy.On, Settings: &want}
		for name, marshal := range map[string]func(any) ([]byte, error){"JSON": json.Marshal, "YAML": yaml.Marshal} {
			data, err := marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			got, err := policy.Load(data, known)
			if diff := cmp.Diff(p, got); err != nil || diff != "" {
				t.Fatalf("%s: %v (-want +got):\n%s\n%s", name, err, diff, data)
			}
		}
	})
}

// drawSettings draws settings as Load returns them.
func drawSettings(t *rapid.T) calico.Settings {
	var s calico.Settings
	s.Datastore = rapid.SampledFrom([]calico.Datastore{
		"", calico.DatastoreAuto, calico.DatastoreKubernetes, calico.DatastoreEtcd,
	}).Draw(t, "datastore")
	if s.Datastore == calico.DatastoreKubernetes {
		return s
	}
	text := rapid.OneOf(
		rapid.StringMatching(`[ -~]{1,9}`),
		rapid.SampledFrom([]string{"no", "null", "~", "1", "1e3", "---", "2001-01-01", "ü", "a: b", "#"}),
	)
	if rapid.Bool().Draw(t, "has endpoints") {
		s.Etcd.Endpoints = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			host := rapid.StringMatching(`[a-z0-9.-]{1,9}|\[[0-9a-f]{1,4}::[0-9a-f]{1,4}\]`).Draw(t, "host")
			return fmt.Sprintf("%s://%s:%d", rapid.SampledFrom([]string{"http", "https"}).Draw(t, "scheme"), host,
				rapid.IntRange(1, 65535).Draw(t, "port"))
		}), 1, 3).Draw(t, "endpoints")
	}
	if rapid.Bool().Draw(t, "has user") {
		s.Etcd.Username = text.Draw(t, "username")
		s.Etcd.PasswordFile = rapid.OneOf(rapid.Just(""), text).Draw(t, "passwordFile")
	}
	if rapid.Bool().Draw(t, "has certificate") {
		s.Etcd.CertFile, s.Etcd.KeyFile = text.Draw(t, "certFile"), text.Draw(t, "keyFile")
	}
	s.Etcd.CAFile = rapid.OneOf(rapid.Just(""), text).Draw(t, "caFile")
	return s
}

// TestEndpointsAreURLsOfAHostAndAPort has net/url for its judge of what Load
// accepts.
func TestEndpointsAreURLsOfAHostAndAPort(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"http://", "https://", "HTTP://", "unix://", "//", "/", "etcd", "10.0.0.1", "[", "]", "[::1]", "::1", "[1.2.3.4]",
		":", ":2379", ":0", ":65536", ":02379", ":+1", "@", "root:pw@", "?a=b", "#a", ",", ";", " ", "\n", "%41", "é", "\\",
	})
	start := rapid.OneOf(rapid.StringMatching(`https?://(etcd|10\.0\.0\.1|\[::1\])(:2379)?`), rapid.Just(""))
	some := rapid.OneOf(
		rapid.StringMatching(`https?://(etcd|10\.0\.0\.1|\[::1\]):2379`),
		rapid.Custom(func(t *rapid.T) string {
			return start.Draw(t, "start") + strings.Join(rapid.SliceOfN(piece, 0, 3).Draw(t, "pieces"), "")
		}),
	)
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		text := some.Draw(t, "endpoint")
		data, err := json.Marshal(policyWith(map[string]any{"etcd": map[string]any{"endpoints": []any{text}}}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policy.Load(data, known); err != nil {
			return
		}
		accepted++
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		port, err := strconv.Atoi(u.Port())
		if err != nil || port < 1 || port > 65535 {
			t.Errorf("%q is accepted, its port is %q", text, u.Port())
		}
		want := url.URL{Scheme: u.Scheme, Host: u.Host}
		if diff := cmp.Diff(want, *u); diff != "" || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			t.Errorf("%q is accepted, as a URL it is (-want +got):\n%s", text, diff)
		}
	})
	if accepted == 0 {
		t.Error("no endpoint was accepted")
	}
}

// policyWith returns a policy with nothing but these settings of Calico.
func policyWith(settings any) map[string]any {
	return map[string]any{
		"apiVersion": policy.APIVersion, "kind": policy.Kind,
		"backends": map[string]any{"calico": settings},
	}
}
