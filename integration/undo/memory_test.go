package undo_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The ConfigMap of the ledger, and where it has it.
const (
	ledgerName = "ip-reaper-ledger"
	ledgerKey  = "ledger.json.gz"
)

// forget removes ledger, journals and lock.
func (s *scene) forget() {
	s.Helper()
	s.unlock()
	s.must(s.Cluster.Kube.CoreV1().ConfigMaps(home).DeleteCollection(s.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
}

// remember has a run see what is ownerless, and release nothing, and then has that
// been an hour ago. The figures of its census are forgotten, so that the next run
// has something to write down.
func (s *scene) remember() {
	s.Helper()
	s.run(onlyLook)
	s.backdate()
	s.proxy.Reset()
}

// backdate has everything in the ledger been seen an hour earlier.
func (s *scene) backdate() {
	s.Helper()
	maps := s.Cluster.Kube.CoreV1().ConfigMaps(home)
	cm, err := maps.Get(s.Context(), ledgerName, metav1.GetOptions{})
	s.must(err)
	var ledger map[string]any
	s.must(json.Unmarshal(unzip(s, cm.BinaryData[ledgerKey]), &ledger))
	seen, _ := ledger["seen"].(map[string]any)
	for id, at := range seen {
		seen[id] = int64(at.(float64)) - 3600
	}
	delete(ledger, "figures")
	text, err := json.Marshal(ledger)
	s.must(err)
	cm.BinaryData[ledgerKey] = zip(s, text)
	_, err = maps.Update(s.Context(), cm, metav1.UpdateOptions{})
	s.must(err)
}

func unzip(s *scene, data []byte) []byte {
	s.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	s.must(err)
	text, err := io.ReadAll(r)
	s.must(err)
	return text
}

func zip(s *scene, text []byte) []byte {
	s.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, err := w.Write(text)
	s.must(err)
	s.must(w.Close())
	return buf.Bytes()
}

// journalParts are the ConfigMaps of all journals, by name.
func (s *scene) journalParts() []corev1.ConfigMap {
	s.Helper()
	list, err := s.Cluster.Kube.CoreV1().ConfigMaps(home).List(s.Context(), metav1.ListOptions{LabelSelector: kube.JournalLabel + "=true"})
	s.must(err)
	return list.Items
}

// journals are the IDs of the runs that there are journals of.
func (s *scene) journals() []string {
	s.Helper()
	var runs []string
	for _, cm := range s.journalParts() {
		if id := cm.Labels[kube.RunLabel]; !slices.Contains(runs, id) {
			runs = append(runs, id)
		}
	}
	return runs
}
