package ship_test

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// fullValues set every value that is a string, as an operator may. global is not the chart's.
var fullValues = []string{`
mode: release
nameOverride: every-name
commonLabels: {every-common: everyCommon}
serviceAccount: {annotations: {every-iam: everyIAM}}
image: {repository: every.example:5000/a/every-image, tag: everyTag, pullPolicy: Always}
imagePullSecrets: [{name: every-pull}]
schedule: 3 * * * *
timeZone: Europe/Berlin
concurrencyPolicy: Forbid
timeout: 57s
policy: &policy
  gracePeriod: 51m
  minAge: 52m
  namespaces: {include: [every-include], exclude: [every-exclude]}
  rules:
  - match: {namespaces: [every-match], pods: [every-pods], backends: ["calic?"], pools: [every-pool], nodes: [every-nodes]}
    gracePeriod: 53m
    minAge: 54m
    restored: release
  evidence: {annotations: own}
  pods: {finished: release, stuck: release, superseded: hold, unnamed: release}
  nodes: {unreachable: release, unknown: release, foreign: release}
  protection: {statefulSets: ignore}
  journal: {keepFor: 55h, restoreHold: 56h}
backends:
  whereabouts: {enabled: auto, unknownFields: ignore}
  overlapping: {enabled: auto}
  calico: {enabled: auto, datastore: etcdv3, etcd: {endpoints: ["https://every-etcd:2379"], secretName: every-etcd-secret}}
  reservedIPs:
    resources:
    - resource: {group: every.group, version: v9every, resource: everyresource}
      address: .every.address
      pod: .every.pod
      namespace: .every.namespace
      ttl: 58h
      deletedAt: .every.deleted
metrics:
  pushURL: http://every-push:9091
  caBundle: {configMap: every-ca-map, key: everyCAKey}
  prometheusRule: {enabled: true, labels: {every-rule: everyRule}, runbooks: "https://every.example/docs/"}
  dashboard: {enabled: true, labels: {every-dashboard: everyDashboard}, annotations: {every-folder: everyFolder}}
outage: {enabled: true}
restore: {enabled: true}
admissionPolicies: {enabled: auto}
openshift: {enabled: auto}
networkPolicy:
  enabled: true
  apiServer: {cidrs: [192.0.2.1/32]}
  etcd: {cidrs: [192.0.2.2/32]}
  pushgateway: {cidrs: [192.0.2.3/32]}
node:
  enabled: true
  mode: release
  every: 59s
  policy: *policy
  backends: {hostlocal: {every-field: everyHostLocal}, azurecns: {every-cns: everyCNS}}
  runtimeSocket: /every/run/every.sock
  confDir: /every/conf
  dataDirs: [/every/data]
  metricsFolder: /every/metrics
  seLinuxType: every_t
  priorityClassName: every-node-class
  nodeSelector: {every-label-of-node: everyLabelOfNode}
  tolerations: [{key: every-taint-of-node, operator: Equal}]
  resources: {requests: {cpu: 71m, memory: 72Mi, ephemeral-storage: 73Mi}, limits: {cpu: 74m, memory: 75Mi, ephemeral-storage: 76Mi, example.com/of-node: "7177"}}
  goMemLimit: 78MiB
resources: {requests: {cpu: 81m, memory: 82Mi, ephemeral-storage: 83Mi}, limits: {cpu: 84m, memory: 85Mi, ephemeral-storage: 86Mi, example.com/every: "8187"}}
goMemLimit: 88MiB
nodeSelector: {every-selector: everySelector}
tolerations: [{key: every-taint, operator: Equal}]
affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: every-affinity, operator: DoesNotExist}]}}]}}
topologySpreadConstraints: [{topologyKey: every-topology, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]
priorityClassName: every-class
dnsPolicy: Default
podLabels: {every-pod-label: everyPodLabel}
podAnnotations: {every-pod-annotation: everyPodAnnotation}
extraEnv: [{name: EVERY_NAME, value: everyValue}, {name: EVERY_FROM, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]
extraVolumes: [{name: every-volume, configMap: {name: every-map}}]
extraVolumeMounts: [{name: every-volume, mountPath: /every/mount}]
`, `
fullnameOverride: every-prefix
image: {digest: "sha256:` + strings.Repeat("ef", 32) + `"}
metrics: {pushURLSecret: {name: every-url, key: everyKey}, caBundle: {secret: every-ca-secret}}
`}

// brokenTexts are what a text may do to a template: end its line or its quotes, and begin an object, a
// field, a comment or a template. U+0085 is not here: Helm's own toYaml makes a space of it.
var brokenTexts = []string{
	"\n- name: intruder\n  image: evil", "\n---\nkind: Secret\n", "\r\nhostPID: true", "\n", `"`, "'", ": ", " #", ",", "{{ .Values.mode }}",
	"}}", "{a: b}", "[a]", "*a", "&a", "!!int ", "- ", "| ", "%", "`", `\`, `\n`, " ", "\t", "é😀", "\u2028", "\ufeff", "\u202e", "\x00", "\x1b[31m",
}

// otherTexts are not strings, if nothing quotes them.
var otherTexts = []string{"true", "yes", "null", "~", "1", "1e3", "0x10", "1_000", ".inf", "2026-11-29"}

// collect gathers the strings of a value by where the schema has them, with the names of fields that an
// operator chooses. A place that the value lacks has none.
func collect(root, schema node, place string, value any, found map[string][]string) {
	if ref, ok := schema["$ref"].(string); ok {
		inner := any(root)
		for field := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			inner = inner.(node)[field]
		}
		collect(root, inner.(node), place, value, found)
	}
	fields, _ := value.(node)
	list, _ := value.([]any)
	properties, _ := schema["properties"].(node)
	for field, inner := range properties {
		collect(root, inner.(node), place+"/"+field, fields[field], found)
	}
	others, open := schema["additionalProperties"].(node)
	free := schema["type"] == "object" && properties == nil && !open
	if open {
		for field := range fields {
			if _, known := properties[field]; !known {
				found[place+"/(name)"] = append(found[place+"/(name)"], field)
			}
		}
	}
	if open {
		for _, inner := range fields {
			collect(root, others, place+"/*", inner, found)
		}
	}
	if free {
		found[place+"/*"] = append(found[place+"/*"], stringsIn(value)...)
	}
	if items, ok := schema["items"].(node); ok {
		for _, one := range append(list, nil) {
			collect(root, items, place+"/0", one, found)
		}
	}
	if takesText(schema) {
		found[place] = append(found[place], stringsIn(value)...)
	}
}

// takesText says whether a schema itself, not what it refers to, is of a string.
func takesText(schema node) bool {
	isText := func(v any) bool { _, ok := v.(string); return ok }
	types, _ := schema["type"].([]any)
	enum, _ := schema["enum"].([]any)
	parts, _ := schema["anyOf"].([]any)
	return schema["type"] == "string" || slices.Contains(types, any("string")) || slices.ContainsFunc(enum, isText) ||
		slices.ContainsFunc(parts, func(part any) bool { return takesText(part.(node)) })
}

// stringsIn are the strings in a value, and the names of fields that an operator chose.
func stringsIn(value any) (all []string) {
	switch v := value.(type) {
	case string:
		all = append(all, v)
	case []any:
		for _, one := range v {
			all = append(all, stringsIn(one)...)
		}
	case node:
		for field, one := range v {
			if strings.HasPrefix(field, "every") {
				all = append(all, field)
			}
			all = append(all, stringsIn(one)...)
		}
	}
	return all
}

// plain returns objects as JSON has them, with the policies that are texts in ConfigMaps.
func plain(t *testing.T, objects map[string]unstructured.Unstructured) string {
	t.Helper()
	all := make(map[string]any)
	for key, object := range objects {
		data, _, err := unstructured.NestedStringMap(object.Object, "data")
		must(t, err)
		for file, text := range data {
			var policy any
			if path.Ext(file) == ".yaml" {
				must(t, yaml.UnmarshalStrict([]byte(text), &policy))
				all[key+" "+file] = policy
				unstructured.RemoveNestedField(object.Object, "data", file)
			}
		}
		all[key] = object.Object
	}
	return asJSON(t, all)
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return string(text)
}

// inside is a JSON string without its quotes.
func inside(text string) string { return text[1 : len(text)-1] }

// replace puts texts into JSON, in place of whole strings or of what is in them.
func replace(t *testing.T, json string, texts map[string]string, whole bool) node {
	t.Helper()
	var pairs []string
	for _, old := range slices.Backward(slices.SortedFunc(maps.Keys(texts), func(a, b string) int { return len(a) - len(b) })) {
		from, to := asJSON(t, old), asJSON(t, texts[old])
		if !whole {
			from, to = from[1:len(from)-1], to[1:len(to)-1]
		}
		pairs = append(pairs, from, to)
	}
	return parseNode(t, []byte(strings.NewReplacer(pairs...).Replace(json)))
}

// Whatever text a value is, the schema refuses it, or it is in the objects where a harmless one would
// be, and nothing else about them changes.
func TestHostileValuesStayTexts(t *testing.T) {
	c := loadChart(t)
	root := parseNode(t, c.Schema)
	compiler := jsonschema.NewCompiler()
	must(t, compiler.AddResource("values.json", root))
	schema, err := compiler.Compile("values.json")
	must(t, err)
	objects := func(given node) string {
		files, err := theRelease.renderChart(c, given, newest)
		must(t, err)
		return plain(t, decode(t, manifestsOf(t, files)))
	}
	given := make(map[string]bool) // the places of the schema
	for _, full := range fullValues {
		full := values(t, full)
		found := make(map[string][]string)
		collect(root, root, "", full, found)
		var texts, names []string
		delete(found, "/global/*")
		for place, some := range found {
			given[place] = given[place] || len(some) > 0
			if path.Base(place) == "(name)" {
				names = append(names, some...)
			} else {
				texts = append(texts, some...)
			}
		}
		merged, err := util.CoalesceValues(c, full)
		must(t, err)
		all, set, harmless := asJSON(t, merged), asJSON(t, full), objects(full)
		check := func(some []string, hostile func(string) string) {
			to := make(map[string]string)
			for _, one := range some {
				if schema.Validate(replace(t, all, map[string]string{one: hostile(one)}, true)) == nil {
					to[one] = hostile(one)
					if !strings.Contains(harmless, one) {
						t.Errorf("no object has %s", one)
					}
				}
			}
			want, got := replace(t, harmless, to, false), parseNode(t, []byte(objects(replace(t, set, to, true))))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", to, diff)
			}
		}
		both := slices.Concat(texts, names)
		for _, hostile := range brokenTexts {
			check(both, func(one string) string { return hostile + one })
			check(both, func(one string) string { return one + hostile })
		}
		for _, hostile := range otherTexts {
			check(texts, func(string) string { return hostile })
			for _, name := range names { // two may meet in one object
				check([]string{name}, func(string) string { return hostile })
			}
		}
	}
	for place, ok := range given {
		if !ok {
			t.Errorf("fullValues have no %s", place)
		}
	}
}
