package plugin_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// A store is a backend with a name and nothing else.
type store struct {
	ipam.Backend
	name string
}

func (s store) Name() string { return s.name }

type settings struct{ Size int }

// opens returns a plugin whose Open returns these.
func opens(name string, b ipam.Backend, err error) plugin.Plugin {
	return plugin.Plugin{Name: name, Summary: "Something", Open: func(context.Context, plugin.Env, any) (ipam.Backend, error) {
		return b, err
	}}
}

func names(backends []ipam.Backend) []string {
	var names []string
	for _, b := range backends {
		names = append(names, b.Name())
	}
	return names
}

// A guard is a protector with a name and nothing else.
type guard struct {
	ipam.Protector
	name string
}

func (g guard) Name() string { return g.name }

// Promise 2. Protectors are opened apart from the backends, in the order of their plugins. An error of
// one is not left out.
func TestPluginsAreOpenedInOrder(t *testing.T) {
	protects := func(name string, err error) plugin.Plugin {
		return plugin.Plugin{Name: name, Protect: func(context.Context, plugin.Env, any) (ipam.Protector, error) { return guard{name: name}, err }}
	}
	plugins := []plugin.Plugin{
		protects("a", nil), opens("b", store{name: "b"}, nil), opens("unused", nil, plugin.ErrUnused), protects("idle", plugin.ErrUnused),
		protects("c", nil), opens("d", store{name: "d"}, nil),
	}
	backends, protectors, err := plugin.Open(t.Context(), plugins, plugin.Env{}, policy.Default())
	if want := []string{"b", "d"}; err != nil || !slices.Equal(names(backends), want) {
		t.Errorf("Open = %v, %v, want %v", names(backends), err, want)
	}
	if want := []ipam.Protector{guard{name: "a"}, guard{name: "c"}}; !slices.Equal(protectors, want) {
		t.Errorf("protectors are %v, want %v", protectors, want)
	}
	refused := ipam.BadInput(errors.New("wrong"), "")
	for _, one := range []plugin.Plugin{opens("e", nil, refused), protects("e", refused)} {
		backends, protectors, err = plugin.Open(t.Context(), append(plugins, one), plugin.Env{}, policy.Default())
		if !errors.Is(err, refused) || backends != nil || protectors != nil {
			t.Errorf("Open = %v, %v, %v, want the error as it is", backends, protectors, err)
		}
	}
}

// Promise 2. A store of the same networks may have an address.
func TestWhichStoresShareAddresses(t *testing.T) {
	shares := plugin.Shares([]plugin.Plugin{{Name: "pools"}, {Name: "marks", Beside: "pools"}, {Name: "blocks"}})
	var got []string
	for _, one := range []string{"pools", "marks", "blocks"} {
		for _, other := range []string{"pools", "marks", "blocks"} {
			if one != other && shares(one, other) {
				got = append(got, one+" "+other)
			}
		}
	}
	if want := []string{"pools marks", "marks pools"}; !slices.Equal(got, want) {
		t.Errorf("shared are %q, want %q", got, want)
	}
}

// A backend also sees the settings of the others: two backends of one program's stores share what
// the policy says about one of them.
func TestBackendsAreOpenedWithWhatThePolicySays(t *testing.T) {
	type opened struct {
		On, Off  bool
		Variable string
		Settings any
		Others   [3]any // of another backend, of one without settings, of none
	}
	defaults := func() any { return new(settings) }
	config, client := &rest.Config{Host: "here"}, new(rest.RESTClient)
	getenv := func(name string) string { return "value of " + name }
	for _, tt := range []struct {
		name     string
		settings func() any
		policy   map[string]policy.Backend
		want     opened
	}{
		{"not named", defaults, nil, opened{Settings: &settings{}, Others: [3]any{&settings{}}}},
		{"without settings", nil, map[string]policy.Backend{"x": {}}, opened{Others: [3]any{&settings{}}}},
		{"named", defaults, map[string]policy.Backend{"x": {Enabled: policy.On, Settings: &settings{Size: 3}}, "y": {Enabled: policy.Off}},
			opened{On: true, Settings: &settings{Size: 3}, Others: [3]any{&settings{}}}},
		{"off", nil, map[string]policy.Backend{"x": {Enabled: policy.Off}}, opened{Off: true, Others: [3]any{&settings{}}}},
		{"beside one that is off", nil, map[string]policy.Backend{"y": {Enabled: policy.Off, Settings: &settings{Size: 4}}},
			opened{Others: [3]any{&settings{Size: 4}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got opened
			p := plugin.Plugin{Name: "x", Settings: tt.settings, Open: func(_ context.Context, env plugin.Env, settings any) (ipam.Backend, error) {
				if env.Config != config || env.Client != client {
					t.Errorf("the config is %v, and the client %v", env.Config, env.Client)
				}
				others := [3]any{env.Settings("y"), env.Settings("none"), env.Settings("nobody")}
				got = opened{env.On, env.Off, env.Getenv("A"), settings, others}
				return store{name: "x"}, nil
			}}
			other := opens("y", store{name: "y"}, nil)
			other.Settings = defaults
			in := policy.Default()
			in.Backends = tt.policy
			plugins := []plugin.Plugin{p, other, opens("none", store{name: "none"}, nil)}
			if _, _, err := plugin.Open(t.Context(), plugins, plugin.Env{Config: config, Client: client, Getenv: getenv}, in); err != nil {
				t.Fatal(err)
			}
			tt.want.Variable = "value of A"
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("opened with (-want +got):\n%s", diff)
			}
		})
	}
}

// of returns a plugin whose Offline uses some kinds, and finds its store only if the
// documents have the first.
func of(name string, kinds ...string) plugin.Plugin {
	return plugin.Plugin{Name: name, Offline: func(documents []ipam.Document, _ func(string) any) (ipam.Backend, []ipam.Document) {
		var found ipam.Backend
		var rest []ipam.Document
		for _, d := range documents {
			if !slices.Contains(kinds, d.Kind) {
				rest = append(rest, d)
			}
			if d.Kind == kinds[0] {
				found = store{name: name}
			}
		}
		return found, rest
	}}
}

func TestDocumentsThatAreOfUseToNoBackendAreStrange(t *testing.T) {
	document := func(place, kind string) ipam.Document {
		return ipam.Document{File: "f", Place: place, Kind: kind}
	}
	plugins := []plugin.Plugin{of("a", "A", "Shared"), {Name: "online only"}, of("b", "B", "Shared")}
	for _, tt := range []struct {
		name      string
		documents []ipam.Document
		found     []string
		strange   []ipam.Document
	}{
		{"nothing", nil, nil, nil},
		{"of one", []ipam.Document{document("1", "B")}, []string{"b"}, nil},
		{"of both", []ipam.Document{document("1", "B"), document("2", "Shared"), document("3", "A")}, []string{"a", "b"}, nil},
		{"of one, twice the same", []ipam.Document{document("1", "B"), document("1", "B")}, []string{"b"}, nil},
		{"shared alone", []ipam.Document{document("1", "Shared")}, nil, nil},
		{"of none", []ipam.Document{document("1", "C"), document("2", "A"), document("3", "C")},
			[]string{"a"}, []ipam.Document{document("1", "C"), document("3", "C")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, strange := plugin.Offline(plugins, tt.documents, policy.Default())
			if !slices.Equal(names(found), tt.found) {
				t.Errorf("found %v, want %v", names(found), tt.found)
			}
			if diff := cmp.Diff(tt.strange, strange); diff != "" {
				t.Errorf("strange (-want +got):\n%s", diff)
			}
		})
	}
	if _, strange := plugin.Offline(nil, []ipam.Document{document("1", "A")}, policy.Default()); len(strange) != 1 {
		t.Errorf("without backends, strange are %v, want all", strange)
	}
}
