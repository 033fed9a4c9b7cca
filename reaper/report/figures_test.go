package report

import (
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the store gives to no pod any more counts as used, and fills nothing.
func TestFullIsWhatIsNotFree(t *testing.T) {
	percent := func(n int) *int { return &n }
	for _, tt := range []struct {
		name            string
		inside, outside int
		capacity        *big.Int
		closed          bool
		want            *int
	}{
		{"almost full", 999, 0, big.NewInt(1000), false, percent(99)},
		{"full", 9, 0, big.NewInt(9), false, percent(100)},
		{"no addresses", 0, 0, new(big.Int), false, percent(100)},
		{"almost empty", 1, 0, big.NewInt(256), false, percent(0)},
		{"some were excluded later", 1, 4, big.NewInt(4), false, percent(25)},
		{"very many", 1, 0, new(big.Int).Lsh(big.NewInt(1), 80), false, percent(0)},
		{"unknown", 5, 0, nil, false, nil},
		{"closed", 5, 0, big.NewInt(10), true, nil},
	} {
		var f filling
		for range tt.inside {
			f.add(InUse, true)
		}
		for range tt.outside {
			f.add(Protected, false)
		}
		u := f.usage(tt.capacity, tt.closed)
		if diff := cmp.Diff(tt.want, u.FullPercent); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if u.Leaked != tt.outside || u.Protected != tt.outside || u.Used != tt.inside+tt.outside {
			t.Errorf("%s: %d used, %d leaked, %d protected", tt.name, u.Used, u.Leaked, u.Protected)
		}
	}
}
