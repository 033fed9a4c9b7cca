package whereabouts_test

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/whereabouts"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

const header = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\n"

func TestSettingsAreLoaded(t *testing.T) {
	for _, tt := range []struct {
		backends string
		want     whereabouts.UnknownFields
		err      string // a part of the error
	}{
		{"{whereabouts: {}}", "", ""},
		{"{whereabouts: {unknownFields: hold}}", whereabouts.HoldUnknownFields, ""},
		{"{whereabouts: {enabled: true, unknownFields: ignore}}", whereabouts.IgnoreUnknownFields, ""},
		{"{whereabouts: {unknownFields: release}}", "", `backends.whereabouts.unknownFields: Unsupported value: "release": supported values: "hold", "ignore"`},
		{"{whereabouts: {unknownFields: ''}}", "", "backends.whereabouts.unknownFields: Required value"},
		{"{whereabouts: {unknownFields: true}}", "", "backends.whereabouts.unknownFields: Invalid value"},
		{"{overlapping: {unknownFields: ignore}}", "", "backends.overlapping.unknownFields: Forbidden: unknown field"},
	} {
		t.Run(tt.backends, func(t *testing.T) {
			p, err := policy.Load([]byte(header+"backends: "+tt.backends), plugin.Known(whereabouts.Plugins()))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("Load: %v, want %q", err, tt.err)
				}
				return
			}
			s, ok := p.Backends["whereabouts"].Settings.(*whereabouts.Settings)
			if err != nil || !ok || s.UnknownFields != tt.want {
				t.Errorf("Load = %+v, %v, want %q", p.Backends, err, tt.want)
			}
		})
	}
}

// Both backends use the settings of Pools, even if a policy turns Pools off.
func TestBothBackendsAreOpenedWithTheSettings(t *testing.T) {
	for _, p := range whereabouts.Plugins() {
		asked := ""
		b, err := p.Open(t.Context(), plugin.Env{
			Client: new(rest.RESTClient), Getenv: func(string) string { return "" },
			Settings: func(backend string) any { asked = backend; return new(whereabouts.Settings) },
		}, nil)
		if err != nil || b.Name() != p.Name || asked != whereabouts.PoolsName {
			t.Errorf("%s: Open = %v, %v with the settings of %q, want those of %s", p.Name, b, err, asked, whereabouts.PoolsName)
		}
	}
}
