package calico_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// A replica is the datastore that a form was loaded into, and the cluster of its pods.
type replica struct {
	cluster   *cluster.Cluster
	datastore *calico.Datastore // nil if Calico's programs that run here do not know it
	env       []string          // of ip-reaper
}

// load makes the store hold what the form's folder has, byte for byte. The objects of
// the API server are written into its etcd, in the form in which it stores them: so
// they keep their UIDs and times.
func (f form) load(t *testing.T) replica {
	t.Helper()
	s := replica{cluster: cluster.StartT(t)}
	served := connect(t, s.cluster.EtcdURL)
	switch f.group {
	case "":
		s.datastore = calico.EtcdT(t)
		s.env = []string{"ETCD_ENDPOINTS=" + s.datastore.Etcd.Endpoint}
		put(t, s.datastore.Etcd.Client, f.keys(t))
	case groupV1:
		s.datastore = calico.KubernetesT(t)
	default:
		s.cluster.ResetT(t)
	}
	if f.group != "" {
		put(t, served, f.objects(t))
	}
	pods := items(t, filepath.Join("testdata", f.alive, "pods.json"))
	if !f.clone {
		if err := s.cluster.CreateNode(t.Context(), "node-4", true); err != nil {
			t.Fatal(err)
		}
		const key = "/registry/pods/a/othernode"
		pods[key] = strings.ReplaceAll(pods[key], `"nodeName":"node-2"`, `"nodeName":"node-4"`)
	}
	put(t, served, pods)
	f.createNodes(t, s.cluster, served)
	return s
}

// createNodes creates the nodes, ready as they were.
func (f form) createNodes(t *testing.T, c *cluster.Cluster, served *clientv3.Client) {
	t.Helper()
	file := filepath.Join("testdata", f.alive, "nodes.json")
	if f.aged {
		put(t, served, items(t, file))
		return
	}
	var list corev1.NodeList
	decodeFile(t, file, &list)
	for _, node := range list.Items {
		ready := node.Status.Conditions[0].Status == corev1.ConditionTrue
		if err := c.CreateNode(t.Context(), node.Name, ready); err != nil {
			t.Fatal(err)
		}
	}
}

// connect returns a client of an etcd in the clear.
func connect(t *testing.T, url string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// put writes the values.
func put(t *testing.T, client *clientv3.Client, values map[string]string) {
	t.Helper()
	for key, value := range values {
		if _, err := client.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
}

// keys are the keys and values of an etcd of Calico's.
func (f form) keys(t *testing.T) map[string]string {
	t.Helper()
	var pairs []struct{ Key, Value string }
	decodeFile(t, filepath.Join("testdata", f.name, "etcd.json"), &pairs)
	all := map[string]string{}
	for _, pair := range pairs {
		all[pair.Key] = pair.Value
	}
	return all
}

// objects are the custom resources of the form, as the API server stores them.
func (f form) objects(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", f.name, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range files {
		if base := filepath.Base(file); base == "pods.json" || base == "nodes.json" {
			continue
		}
		for key, value := range items(t, file) {
			all[key] = value
		}
	}
	return all
}

// items are the objects of a list, as the API server stores them. A list of one kind
// names kind and version once for all.
func items(t *testing.T, file string) map[string]string {
	t.Helper()
	var list struct {
		APIVersion, Kind string
		Items            []map[string]any
	}
	decodeFile(t, file, &list)
	all := map[string]string{}
	for _, item := range list.Items {
		if item["kind"] == nil {
			item["apiVersion"], item["kind"] = list.APIVersion, strings.TrimSuffix(list.Kind, "List")
		}
		metadata := item["metadata"].(map[string]any)
		delete(metadata, "resourceVersion") // etcd has that
		text, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		group, _, _ := strings.Cut(item["apiVersion"].(string), "/")
		key := "/registry/" + map[string]string{"Pod": "pods", "Node": "minions"}[item["kind"].(string)]
		if plural := plurals[item["kind"].(string)]; plural != "" {
			key = "/registry/" + group + "/" + plural
		}
		if namespace, ok := metadata["namespace"].(string); ok {
			key += "/" + namespace
		}
		all[key+"/"+metadata["name"].(string)] = string(text) + "\n"
	}
	return all
}

// decodeFile decodes JSON and keeps every digit.
func decodeFile(t *testing.T, file string, into any) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(f)
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("decode %s: %v", file, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
