package ship_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"

	"github.com/ip-reaper/ip-reaper/backends"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// node is an object of a JSON schema.
type node = map[string]any

func parseNode(t *testing.T, data []byte) node {
	t.Helper()
	var schema node
	must(t, json.Unmarshal(data, &schema))
	return schema
}

// The chart's schema has that of the program's policies in it, for helm knows no other
// place. The program says what belongs there.
func TestSchemaHasThePolicyOfTheProgram(t *testing.T) {
	text, err := policy.Schema(plugin.Known(backends.All()))
	must(t, err)
	want := parseNode(t, text)
	got := parseNode(t, loadChart(t).Schema)
	fields := want["properties"].(node)
	ofBackends := fields["backends"].(node)["properties"].(node)
	resources := ofBackends["reservedIPs"].(node)["properties"].(node)["resources"]
	for _, field := range []string{"apiVersion", "kind", "dryRun", "backends"} {
		delete(fields, field)
	}
	properties := got["properties"].(node)
	inChart := properties["policy"].(node)
	if inChart["additionalProperties"] != false {
		t.Error("policy takes any field")
	}
	// These are there for the templates to refuse them with a hint.
	for _, field := range []string{"dryRun", "backends"} {
		delete(inChart["properties"].(node), field)
	}
	if diff := cmp.Diff(fields, inChart["properties"].(node)); diff != "" {
		t.Errorf("properties of policy (-program +chart):\n%s", diff)
	}
	definitions := got["$defs"].(node)
	for name, want := range want["$defs"].(node) {
		if diff := cmp.Diff(want, definitions[name]); diff != "" {
			t.Errorf("$defs.%s (-program +chart):\n%s", name, diff)
		}
	}
	valuesOfBackends := properties["backends"].(node)["properties"].(node)
	if diff := cmp.Diff(resources, valuesOfBackends["reservedIPs"].(node)["properties"].(node)["resources"]); diff != "" {
		t.Errorf("the resources that reserve addresses (-program +chart):\n%s", diff)
	}
}

// helm lint finds nothing to warn of.
func TestChartLints(t *testing.T) {
	for _, text := range []string{"", everything, everything + etcdValues + metricsValues} {
		result := lint.RunAll(chartDir(), values(t, text), theRelease.namespace)
		for _, message := range result.Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("values %q: %v", text, message)
			}
		}
		if len(result.Messages) == 0 {
			t.Error("helm lint does not even miss an icon: did it find the chart?")
		}
	}
}
