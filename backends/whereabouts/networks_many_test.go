package whereabouts

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A tenant may write tens of thousands of ranges into one attachment. The survey takes a
// second for them, and took minutes when its time was quadratic in their number.
func TestSurveyOfManyRangesOfOneTenantIsFast(t *testing.T) {
	const many = 30_000
	for name, tt := range map[string]struct {
		fields string
		entry  func(a, b, c int) string
		want   int
	}{
		"of one network": {"", func(a, b, c int) string { return fmt.Sprintf("10.%d.%d.%d-10.%[1]d.%[2]d.%[3]d/8", a, b, c+1) }, 1},
		"with slices that are not known": {`"node_slice_size": "/30", `,
			func(a, b, c int) string { return fmt.Sprintf("10.%d.%d.%d/30", a, b, c) }, many},
	} {
		t.Run(name, func(t *testing.T) {
			ranges := make([]string, many)
			for i := range ranges {
				ranges[i] = fmt.Sprintf(`{"range": %q}`, tt.entry(i>>14, i>>6&255, i&63*4))
			}
			var all exclusions
			all.add("tenant/many", readConfig(`{"ipam": {"type": "whereabouts", `+tt.fields+`"ipRanges": [`+strings.Join(ranges, ",")+`]}}`))
			began := time.Now()
			s := survey{ranges: all.ranges, blind: true}
			if got := len(s.networks(nil)); got != tt.want {
				t.Errorf("%d networks, want %d", got, tt.want)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("the survey took %s", took)
			}
		})
	}
}
