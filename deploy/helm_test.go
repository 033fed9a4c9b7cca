package deploy_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/template"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// chartRules renders one of the chart's templates that make rules of roles. The
// whole chart is rendered by Helm itself in integration/.
func chartRules(t *testing.T, name string, data any) []rbacv1.PolicyRule {
	t.Helper()
	chart := template.New("chart")
	include := func(name string, data any) (string, error) {
		var text bytes.Buffer
		err := chart.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	chart.Funcs(chartFuncs).Funcs(template.FuncMap{"include": include})
	const dir = "helm/ip-reaper/templates/"
	if _, err := chart.ParseFiles(dir+"_backends.tpl", dir+"_roles.tpl"); err != nil {
		t.Fatal(err)
	}
	// That of the chart takes more functions: Calico's data is not in etcd here.
	template.Must(chart.Parse(`{{ define "ip-reaper.etcd" }}{{ end }}`))
	text, err := include(name, data)
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	if err := yaml.UnmarshalStrict([]byte(text), &rules); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
	return rules
}

// chartFuncs are as much of Helm's functions as those templates use.
var chartFuncs = template.FuncMap{
	"append": func(all []any, one any) []any { return append(slices.Clone(all), one) },
	"list":   func(all ...any) []any { return all },
	"has": func(one any, all []any) bool {
		return slices.ContainsFunc(all, func(a any) bool { return reflect.DeepEqual(a, one) })
	},
	"ternary": func(yes, no any, choice bool) any { return map[bool]any{true: yes, false: no}[choice] },
	"default": func(instead, value any) any {
		if truth, _ := template.IsTrue(value); truth {
			return value
		}
		return instead
	},
	"toString": func(value any) string { return strings.Trim(mustJSON(value), `"`) },
	"toJson":   mustJSON,
	"fromJsonArray": func(text string) (all []any, err error) {
		err = json.Unmarshal([]byte(text), &all)
		return all, err
	},
	"untilStep": func(from, to, step int) (all []int) {
		for ; from < to; from += step {
			all = append(all, from)
		}
		return all
	},
}

func mustJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// chartData is what the templates of rules take: every backend on, with resources
// that reserve addresses.
func chartData(release bool) map[string]any {
	resource := func(group, name string) map[string]any {
		return map[string]any{"group": group, "version": "v1", "resource": name}
	}
	on := map[string]any{"enabled": "auto"}
	return map[string]any{"release": release, "root": map[string]any{"Values": map[string]any{"backends": map[string]any{
		"whereabouts": on, "overlapping": on, "calico": on,
		"reservedIPs": map[string]any{"resources": []any{
			map[string]any{"resource": resource("a.example.com", "holds")},
			map[string]any{"resource": resource("b.example.com", "keeps"), "deleteExpired": true},
		}},
	}}}}
}
