package run_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/memory"
)

// A ledger is its stored form.
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
func (f *fixture) ledger() ledger {
	f.Helper()
	cm, err := f.Kube.CoreV1().ConfigMaps(home).Get(f.Context(), memory.LedgerName, metav1.GetOptions{})
	f.must(err)
	r, err := gzip.NewReader(bytes.NewReader(cm.BinaryData[memory.LedgerKey]))
	f.must(err)
	data, err := io.ReadAll(r)
	f.must(err)
	var l ledger
	f.must(json.Unmarshal(data, &l))
	return l
}

// store writes a ledger, as by hand.
func (f *fixture) store(l ledger) {
	f.Helper()
	data, err := json.Marshal(l)
	f.must(err)
	f.storeText(zipped(data))
}

// zipped is what gzip makes of data.
func zipped(data []byte) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write(data) // a buffer takes everything
	_ = w.Close()
	return buf.Bytes()
}

// storeText writes any text in the place of the ledger.
func (f *fixture) storeText(data []byte) {
	f.Helper()
	configs := f.Kube.CoreV1().ConfigMaps(home)
	cm, err := configs.Get(f.Context(), memory.LedgerName, metav1.GetOptions{})
	f.must(err)
	cm.BinaryData = map[string][]byte{memory.LedgerKey: data}
	_, err = configs.Update(f.Context(), cm, metav1.UpdateOptions{})
	f.must(err)
}

// pass makes the ledger say what it would say if the runs so far had been earlier by that.
func (f *fixture) pass(d time.Duration) {
	f.Helper()
	f.must(f.memory.Age(f.Context(), d))
}
