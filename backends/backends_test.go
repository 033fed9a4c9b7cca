package backends_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/backends/calico"
	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// opened returns the names of the backends of a cluster that are opened with a policy,
// without any variable.
func opened(t *testing.T, p policy.Policy) []string {
	t.Helper()
	all, _, err := plugin.Open(t.Context(), plugin.Of(backends.All(), plugin.Cluster), plugin.Env{Client: new(rest.RESTClient), Getenv: func(string) string { return "" }}, p)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, b := range all {
		names = append(names, b.Name())
	}
	return names
}

// Promise 1. An overlapping-range reservation is released after the allocation in its pool, and
// an object that reserves an address after the address.
func TestBackendsAreInTheOrderOfReleases(t *testing.T) {
	seen := make(map[string]bool)
	for _, one := range backends.All() {
		if one.Name == "" || one.Summary == "" || (one.Open == nil) == (one.Protect == nil) || seen[one.Name] {
			t.Errorf("%q lacks a name, a summary, or one of Open and Protect, or is there twice", one.Name)
		}
		seen[one.Name] = true
	}
	p := policy.Default()
	if got, want := opened(t, p), []string{"whereabouts", "overlapping", "calico"}; !slices.Equal(got, want) {
		t.Errorf("by default there are %v, want %v", got, want)
	}
	p.Backends[reservedips.Name] = policy.Backend{Settings: &reservedips.Settings{Resources: []reservedips.Resource{
		{Resource: reservedips.ResourceName{Group: "a", Version: "v1", Resource: "b"}, Address: ".a", TTL: ".b"},
	}}}
	env := plugin.Env{Client: new(rest.RESTClient), Getenv: func(string) string { return "" }}
	_, protectors, err := plugin.Open(t.Context(), plugin.Of(backends.All(), plugin.Cluster), env, p)
	if err != nil || len(protectors) != 1 || protectors[0].Name() != reservedips.Name {
		t.Errorf("with resources that reserve addresses, the protectors are %v, %v", protectors, err)
	}
}

// A backend that is off is opened for a restore, with any settings.
func TestBackendThatIsOffOpens(t *testing.T) {
	p := policy.Default()
	for _, one := range backends.All() {
		p.Backends[one.Name] = policy.Backend{Enabled: policy.Off}
	}
	p.Backends[calico.Name] = policy.Backend{Enabled: policy.Off, Settings: &calico.Settings{
		Datastore: calico.DatastoreEtcd, // without any endpoint
	}}
	if got := opened(t, p); !slices.Contains(got, calico.Name) {
		t.Errorf("opened are %v, and not %s", got, calico.Name)
	}
}

// The README tells users which stores there are.
func TestREADMEHasTheTableOfStores(t *testing.T) {
	table := "| store | backend |\n|---|---|\n"
	for _, p := range backends.All() {
		if p.Open != nil {
			table += fmt.Sprintf("| %s | `%s` |\n", p.Summary, p.Name)
		}
	}
	if !strings.Contains(readFile(t, "../README.md"), "\n"+table+"\n") {
		t.Errorf("README.md does not have this table:\n%s", table)
	}
}
