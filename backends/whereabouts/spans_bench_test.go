package whereabouts

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// BenchmarkExclusions protects a pool of 10,000 allocations by one attachment of 0.9 MB.
func BenchmarkExclusions(b *testing.B) {
	var addresses []string
	for i := range 60_000 {
		addresses = append(addresses, fmt.Sprintf("10.0.%d.%d", i/256, i%256))
	}
	list, err := json.Marshal(append(addresses, "10.0.0.0/16"))
	if err != nil {
		b.Fatal(err)
	}
	u := reaper.Pool{Network: unnamed, Range: netip.MustParsePrefix("10.0.0.0/16")}
	for i := range 10_000 {
		u.Allocations = append(u.Allocations, reaper.Allocation{IP: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})})
	}
	for name, config := range map[string]string{
		"many excludes":                single(`, "range": "10.0.0.0/16", "exclude": ` + string(list)),
		"many ranges in a broken text": `{"type": "whereabouts" 10.0.0.0/16 ` + strings.Join(addresses, "/32 "),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				all := readExclusions([]json.RawMessage{json.RawMessage(attachment("lan", config))})
				all.protect(&u, place{u.Network, u.Range})
				if u.Allocations[0].Protected == "" || u.Protected == "" {
					b.Fatal("nothing is protected")
				}
			}
		})
	}
}
