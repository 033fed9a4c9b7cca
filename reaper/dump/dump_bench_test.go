package dump

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// benchSize is the size of each dump in BenchmarkRead. Set it to 100 << 20 for a
// dump of a large cluster.
const benchSize = 1 << 20

// benchPod is a format for one pod: its number, and its containers.
const benchPod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-%d", "namespace": "default", "uid": "u%[1]d",
	"annotations": {"k8s.v1.cni.cncf.io/network-status": "[{\n    \"name\": \"default/net1\",\n    \"interface\": \"net1\",\n    \"ips\": [\n        \"10.1.0.7\"\n    ]\n}]"}},
	"spec": {"nodeName": "node-a", "containers": [%[2]s]}, "status": {"phase": "Running", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}]}}`

const benchContainer = `{"name": "web", "image": "registry.example.com/web:v1", "env": [{"name": "A", "value": "b"}, {"name": "C", "value": "d\ne\n"}], "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}}}`

// benchPods yields pods until they take benchSize bytes.
func benchPods(yield func(pod []byte) bool) {
	containers := strings.Repeat(benchContainer+", ", 7) + benchContainer
	for size, i := 0, 0; size < benchSize; i++ {
		pod := fmt.Appendf(nil, benchPod, i, containers)
		size += len(pod)
		if !yield(pod) {
			return
		}
	}
}

func benchJSON() []byte {
	text := []byte(`{"apiVersion": "v1", "items": [`)
	for pod := range benchPods {
		text = append(append(text, pod...), ",\n"...)
	}
	return append(bytes.TrimSuffix(text, []byte(",\n")), `], "kind": "List"}`...)
}

func benchYAML(b *testing.B, item func(text, pod []byte) []byte) []byte {
	b.Helper()
	var text []byte
	for pod := range benchPods {
		converted, err := yaml.JSONToYAML(pod)
		if err != nil {
			b.Fatal(err)
		}
		text = item(text, converted)
	}
	return text
}

// benchEtcd returns the output of etcdctl: for each pod, a key and a value in the
// given format.
func benchEtcd(begin, format, end string, encode func([]byte) string) []byte {
	text := []byte(begin)
	for pod := range benchPods {
		value := bytes.ReplaceAll(pod, []byte("\n"), nil)
		text = fmt.Appendf(text, format, encode([]byte(fmt.Sprintf("/calico/ipam/v2/handle/%d", len(text)))), encode(value))
	}
	return append(bytes.TrimSuffix(text, []byte(",")), end...)
}

func BenchmarkRead(b *testing.B) {
	utf16, _, err := transform.Bytes(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder(), benchJSON())
	if err != nil {
		b.Fatal(err)
	}
	list := benchYAML(b, func(text, pod []byte) []byte {
		return append(append(text, "\n- "...), bytes.ReplaceAll(bytes.TrimSpace(pod), []byte("\n"), []byte("\n  "))...)
	})
	plain := func(b []byte) string { return string(b) }
	for _, bb := range []struct {
		name string
		text []byte
	}{
		{"JSON list", benchJSON()},
		{"JSON list in UTF-16", utf16},
		{"YAML list", append(append([]byte("apiVersion: v1\nitems:"), list...), "\nkind: List\n"...)},
		{"YAML documents", benchYAML(b, func(text, pod []byte) []byte { return append(append(text, "---\n"...), pod...) })},
		{"etcdctl", benchEtcd("", "%s\n%s\n", "", plain)},
		{"etcdctl as JSON", benchEtcd(`{"kvs":[`, `{"key":"%s","value":"%s"},`, `]}`, base64.StdEncoding.EncodeToString)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.text)))
			b.ReportAllocs()
			for b.Loop() {
				count := 0
				err := readDocuments("f", bytes.NewReader(bb.text), func(reaper.Document) error {
					count++
					return nil
				})
				if err != nil || count < benchSize/4096 {
					b.Fatalf("%d documents, %v", count, err)
				}
			}
		})
	}
}
