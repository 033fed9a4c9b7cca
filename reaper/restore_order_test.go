package reaper_test

import (
	"context"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A logged backend notes what it is asked to put back together.
type logged struct {
	reaper.Recorder
	calls *[][]string
}

func (l logged) Restore(ctx context.Context, pool string, records []reaper.Record) []error {
	var keys []string
	for _, r := range records {
		keys = append(keys, r.Key)
	}
	*l.calls = append(*l.calls, keys)
	return l.Recorder.Restore(ctx, pool, records)
}

// A run that looked twice wrote down what it released last as it was when the rest
// was gone. So that has to be there first.
func TestWhatWasWrittenDownLastIsPutBackFirst(t *testing.T) {
	for _, tt := range []struct {
		writes []int
		want   [][]string
	}{
		{nil, [][]string{{"10.1.0.2"}, {"2", "3"}}},
		{[]int{3}, [][]string{{"10.1.0.2"}, {"2", "3"}}},
		{[]int{1, 2}, [][]string{{"10.1.0.2"}, {"3"}, {"2"}}},
		{[]int{2, 1}, [][]string{{"10.1.0.2"}, {"2", "3"}}},
	} {
		r := newRuin(t)
		var calls [][]string
		r.undo(t, func(o *reaper.RestoreOptions) {
			o.Journal.Writes = tt.writes
			o.Backends = nil
			for _, b := range r.backends {
				o.Backends = append(o.Backends, logged{b.(reaper.Recorder), &calls})
			}
		})
		equal(t, "calls", calls, tt.want)
		r.same(t)
	}
}

// What two looks wrote down alike was released by the second one at most.
func TestRecordThatIsThereTwiceIsOfTheLastWrite(t *testing.T) {
	r := newRuin(t)
	var calls [][]string
	report := r.undo(t, func(o *reaper.RestoreOptions) {
		o.Journal.Records = append(o.Journal.Records, o.Journal.Records[0])
		o.Journal.Writes = []int{3, 1}
		o.Backends = []reaper.Backend{logged{r.backends[0].(reaper.Recorder), &calls}, r.backends[1]}
	})
	equal(t, "records", report.Summary.Records, 3)
	equal(t, "calls", calls, [][]string{{"2"}, {"3"}})
	r.same(t)
}
