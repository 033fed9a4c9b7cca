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

// What no backend reads of files is reported.
func TestDocumentsThatAreOfUse(t *testing.T) {
	plugins := []plugin.Plugin{
		{Name: "a", Access: func(any) plugin.Access {
			return plugin.Access{plugin.Plan: {plugin.Rule("x.org", "policies", "list"), plugin.Rule("x.org", "infos", "get")}}
		}},
		{Name: "b", Reads: func(d ipam.Document) bool { return d.Key == "/b" }},
	}
	reads := plugin.Reads(plugins, policy.Default())
	for name, tt := range map[string]struct {
		document ipam.Document
		want     bool
	}{
		"of a list":                {ipam.Document{APIVersion: "x.org/v1", Kind: "Policy"}, true},
		"a list":                   {ipam.Document{APIVersion: "x.org/v1", Kind: "PolicyList", List: true}, true},
		"of another group":         {ipam.Document{APIVersion: "y.org/v1", Kind: "Policy"}, false},
		"what is not listed":       {ipam.Document{APIVersion: "x.org/v1", Kind: "Info"}, false},
		"a key of a backend":       {ipam.Document{Key: "/b"}, true},
		"a key of another program": {ipam.Document{Key: "/c"}, false},
	} {
		if got := reads(tt.document); got != tt.want {
			t.Errorf("%s: read %t, want %t", name, got, tt.want)
		}
	}
}
