package report_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A network that gets fuller is full in about so long at the rate of the last day; and nothing is said where that is not
// known, or is not soon.
func TestStatusSaysHowSoonANetworkIsFull(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	use := func(ago time.Duration, used int) ledger.Use {
		return ledger.Use{At: now.Add(-ago).Unix(), Used: map[string]int{"store net": used}}
	}
	for name, c := range map[string]struct {
		uses   []ledger.Use
		change func(*report.Report)
		want   time.Duration // 0: nothing is said
		since  time.Duration
	}{
		"it grew by 80 in 20 hours, and 12 are free": {uses: []ledger.Use{use(20*time.Hour, 160), use(8*time.Hour, 239)}, want: 3 * time.Hour, since: 20 * time.Hour},
		"what is older than a day tells nothing":     {uses: []ledger.Use{use(50*time.Hour, 0), use(24*time.Hour, 216)}, want: 12 * time.Hour, since: 24 * time.Hour},
		"no run":                                     {},
		"the only run was just now":                  {uses: []ledger.Use{use(time.Minute, 200)}},
		"it had more":                                {uses: []ledger.Use{use(20*time.Hour, 241)}},
		"it had as many":                             {uses: []ledger.Use{use(20*time.Hour, 240)}},
		"not within a week":                          {uses: []ledger.Use{use(20*time.Hour, 239)}},
		"a run in the future":                        {uses: []ledger.Use{use(-20*time.Hour, 160)}},
		"it was not listed then":                     {uses: []ledger.Use{{At: now.Add(-20 * time.Hour).Unix()}}},
		"it is full":                                 {uses: []ledger.Use{use(20*time.Hour, 160)}, change: func(r *report.Report) { r.Networks[0].Free = new(big.Int) }},
		"a pool could not be read":                   {uses: []ledger.Use{use(20*time.Hour, 160)}, change: func(r *report.Report) { r.Networks[0].Partial = true }},
		"files that have no time":                    {uses: []ledger.Use{use(20*time.Hour, 160)}, change: func(r *report.Report) { r.Run.Undated = true }},
		"soon, although much is free":                {uses: []ledger.Use{use(2*time.Hour, 120)}, change: func(r *report.Report) { r.Networks[0].Free = big.NewInt(60) }, want: time.Hour, since: 2 * time.Hour},
		"not soon, and much is free":                 {uses: []ledger.Use{use(24*time.Hour, 180)}, change: func(r *report.Report) { r.Networks[0].Free = big.NewInt(61) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := report.Report{Run: report.RunInfo{StartedAt: now}, Uses: c.uses, Layout: report.Layout{
				Networks: []report.NetworkReport{{Backend: "store", Name: "net", Pools: []string{"pool"}, Usage: report.Usage{Capacity: big.NewInt(252), Free: big.NewInt(12)}}},
				Pools:    []report.PoolReport{{Backend: "store", Name: "pool", AllocatedBefore: 240}},
			}}
			if c.change != nil {
				c.change(&r)
			}
			var want, got *report.Forecast
			if c.want > 0 {
				want = &report.Forecast{Full: now.Add(c.want), Since: now.Add(-c.since)}
			}
			for _, s := range r.Scarce(nil, nil) {
				got = s.Forecast
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("forecast (-want +got):\n%s", diff)
			}
		})
	}
}
