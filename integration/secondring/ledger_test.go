package secondring_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The ConfigMap of the ledger, and where it has it. They are written down here a
// second time, since a ledger outlives the program that wrote it.
const (
	ledgerName = "ip-reaper-ledger"
	ledgerKey  = "ledger.json.gz"
)

// A ledger is what is stored of it.
type ledger struct {
	Version int                 `json:"version"`
	Seen    map[string]int64    `json:"seen"`
	Nodes   map[string][]string `json:"nodes,omitempty"`
	Figures struct {
		Pods  int `json:"pods,omitempty"`
		Nodes int `json:"nodes,omitempty"`
	} `json:"figures,omitzero"`
}

// ledger reads it.
func (s *scene) ledger() ledger {
	s.Helper()
	cm, err := s.Kube.CoreV1().ConfigMaps(home).Get(s.Context(), ledgerName, metav1.GetOptions{})
	s.must(err)
	r, err := gzip.NewReader(bytes.NewReader(cm.BinaryData[ledgerKey]))
	s.must(err)
	data, err := io.ReadAll(r)
	s.must(err)
	var l ledger
	s.must(json.Unmarshal(data, &l))
	return l
}

// store writes a ledger, as somebody who edits it by hand.
func (s *scene) store(l ledger) {
	s.Helper()
	data, err := json.Marshal(l)
	s.must(err)
	s.storeText(zipped(data))
}

// zipped is what gzip makes of data.
func zipped(data []byte) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write(data) // a buffer takes everything
	_ = w.Close()
	return buf.Bytes()
}

// storeText writes what is no ledger.
func (s *scene) storeText(data []byte) {
	s.Helper()
	configs := s.Kube.CoreV1().ConfigMaps(home)
	cm, err := configs.Get(s.Context(), ledgerName, metav1.GetOptions{})
	s.must(err)
	cm.BinaryData = map[string][]byte{ledgerKey: data}
	_, err = configs.Update(s.Context(), cm, metav1.UpdateOptions{})
	s.must(err)
}

// forget deletes the ledger.
func (s *scene) forget() {
	s.Helper()
	err := s.Kube.CoreV1().ConfigMaps(home).Delete(s.Context(), ledgerName, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		s.must(err)
	}
}

// pass has the ledger's times lie further in the past, which is what it would say if
// the runs so far had been earlier by that.
func (s *scene) pass(d time.Duration) {
	s.Helper()
	l := s.ledger()
	for id := range l.Seen {
		l.Seen[id] -= int64(d / time.Second)
	}
	s.store(l)
}
