package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// Whenever runs are, the uses that are stored are the first one of each six hours, the last four of these, with what the
// last write of their run said.
func TestUsesTellOfADay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l ledger.Ledger
		var want []ledger.Use
		at := int64(0)
		for used := range rapid.IntRange(1, 40).Draw(t, "writes") {
			at += int64(rapid.SampledFrom([]time.Duration{0, time.Hour, 6 * time.Hour, 48 * time.Hour}).Draw(t, "later") / time.Second)
			u := ledger.Use{At: at, Used: map[string]int{"calico blue": used}}
			if n := len(want); n > 0 && want[n-1].At == at {
				want[n-1] = u
			} else if n == 0 || at >= want[n-1].At+6*60*60 {
				want = append(want, u)
			}
			l = l.WithUse(u)
		}
		stored, err := ledger.Decode(l.Salted().Encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[max(0, len(want)-4):], stored.Uses); diff != "" {
			t.Errorf("uses (-want +got):\n%s", diff)
		}
	})
}
