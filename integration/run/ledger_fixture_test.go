package run_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/memory"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
)

// ledger reads the ledger.
func (f *fixture) ledger() ledgertest.Ledger {
	f.Helper()
	cm, err := f.Kube.CoreV1().ConfigMaps(home).Get(f.Context(), memory.LedgerName, metav1.GetOptions{})
	f.must(err)
	l, err := memory.Decode(cm.BinaryData[memory.LedgerKey])
	f.must(err)
	return l
}

// store writes a ledger, as by hand.
func (f *fixture) store(l ledgertest.Ledger) {
	f.Helper()
	f.storeText(memory.Zip(l.Encode()))
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
