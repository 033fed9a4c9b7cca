package reservedips_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

var known = plugin.Known([]plugin.Plugin{reservedips.Plugin()})

const (
	header  = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\n"
	isNull  = "Required value: must not be null; leave the field out for its default"
	isEmpty = "Required value: must not be empty"

	noGroup   = "must be an API group, such as network.example.com"
	noVersion = "must be a version without its group, such as v1 or v1alpha1"
	noTTL     = "must be a JSONPath such as .spec.ttl, a duration such as 24h, or never"
	noPlural  = "must be the plural in lower case, such as reservedips"
)

func TestRefusalsOfReservedIPs(t *testing.T) {
	const (
		resource = "resource: {group: example.com, version: v1, resource: reservedips}"
		required = "Required value: "
	)
	for _, tt := range []struct {
		name, yaml string
		want       []string // after backends.reservedIPs.resources[0]
	}{
		{"null", "", []string{": " + isNull}},
		{"nothing", "{}", []string{
			".resource.group: " + required + noGroup,
			".resource.version: " + required + noVersion,
			".resource.resource: " + required + noPlural,
			": " + required + "must have address or pod",
			".ttl: " + required + "must be the time for which an address is kept, or lead to it",
		}},

		{"empty part of a resource", "{resource: {group: '', version: v1, resource: a}, address: .a, ttl: .b}",
			[]string{".resource.group: " + isEmpty}},
		{"group with its version", "{resource: {group: example.com/v1, version: v1, resource: a}, address: .a, ttl: .b}",
			[]string{`.resource.group: Invalid value: "example.com/v1": ` + noGroup}},
		{"version with its group", "{resource: {group: example.com, version: example.com/v1, resource: a}, address: .a, ttl: .b}",
			[]string{`.resource.version: Invalid value: "example.com/v1": ` + noVersion}},
		{"kind for a resource", "{resource: {group: example.com, version: v1, resource: ReservedIP}, address: .a, ttl: .b}",
			[]string{`.resource.resource: Invalid value: "ReservedIP": ` + noPlural}},
		{"subresource", "{resource: {group: example.com, version: v1, resource: a/status}, address: .a, ttl: .b}",
			[]string{`.resource.resource: Invalid value: "a/status": ` + noPlural}},

		{"neither address nor pod", "{" + resource + ", ttl: .b}", []string{": " + required + "must have address or pod"}},
		{"an empty pod", "{" + resource + ", pod: '', namespace: .n, ttl: .b}", []string{".pod: " + isEmpty}},
		{"namespace alone", "{" + resource + ", namespace: .n, ttl: .b}",
			[]string{".pod: " + required + "must be set where namespace is"}},
		{"namespace of an address", "{" + resource + ", address: .a, namespace: .n, ttl: .b}",
			[]string{".pod: " + required + "must be set where namespace is"}},
		{"no ttl", "{" + resource + ", pod: .a}", []string{".ttl: " + required + "must be the time for which an address is kept, or lead to it"}},
		{"a negative ttl", "{" + resource + ", pod: .a, ttl: -24h}", []string{`.ttl: Invalid value: "-24h": ` + noTTL}},
		{"a ttl in days", "{" + resource + ", pod: .a, ttl: 1d}", []string{`.ttl: Invalid value: "1d": ` + noTTL}},
		{"null path", "{" + resource + ", pod: .a, ttl: .b, deletedAt: }", []string{".deletedAt: " + isNull}},
		{"no path", "{" + resource + ", address: a, pod: b, namespace: c, ttl: d, deletedAt: e}", []string{
			`.address: Invalid value: "a": ` + noPath,
			`.pod: Invalid value: "b": ` + noPath,
			`.namespace: Invalid value: "c": ` + noPath,
			`.ttl: Invalid value: "d": ` + noTTL,
			`.deletedAt: Invalid value: "e": ` + noPath,
		}},
		{"an open path", "{" + resource + ", address: '.a[', ttl: .b}",
			[]string{`.address: Invalid value: ".a[": ` + noPath}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := policy.Load([]byte(header+"backends:\n  reservedIPs:\n    resources:\n    - "+tt.yaml), known)
			for i := range tt.want {
				tt.want[i] = "backends.reservedIPs.resources[0]" + tt.want[i]
			}
			wantRefusal(t, err, tt.want...)
		})
	}
}

func TestVersionsNeedNotLookLikeKubernetesOnes(t *testing.T) {
	for _, version := range []string{"v1", "v1alpha1", "v2beta10", "v1api20240101", "stable"} {
		p, err := policy.Load([]byte(header+"backends: {reservedIPs: {resources: [{resource: "+
			"{group: a, version: "+version+", resource: b}, address: .a, ttl: .b}]}}"), known)
		settings, _ := p.Backends["reservedIPs"].Settings.(*reservedips.Settings)
		if err != nil || settings == nil || settings.Resources[0].Resource.Version != version {
			t.Errorf("Load = %+v, %v, want the version %s", settings, err, version)
		}
	}
}

// TestAResourceIsNamedOnce shows that two versions are one resource: each has
// all its objects.
func TestAResourceIsNamedOnce(t *testing.T) {
	list := func(resources ...string) []byte {
		data := header + "backends:\n  reservedIPs:\n    resources:\n"
		for _, r := range resources {
			data += fmt.Sprintf("    - {resource: {%s}, address: .a, ttl: .b}\n", r)
		}
		return []byte(data)
	}
	_, err := policy.Load(list("group: a, version: v1, resource: b", "group: b, version: v1, resource: b",
		"group: a, version: v1, resource: a", "group: a, version: v2, resource: b", "group: a, version: v1, resource: b"), known)
	wantRefusal(t, err,
		`backends.reservedIPs.resources[3].resource: Duplicate value: "b.a"`,
		`backends.reservedIPs.resources[4].resource: Duplicate value: "b.a"`)

	_, err = policy.Load(list("group: a, version: v1", "group: a, version: v2"), known)
	wantRefusal(t, err,
		"backends.reservedIPs.resources[0].resource.resource: Required value: "+noPlural,
		"backends.reservedIPs.resources[1].resource.resource: Required value: "+noPlural)
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
