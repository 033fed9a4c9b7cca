package calico_test

import (
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
)

func TestInvariants(t *testing.T) {
	const sound = `{"cidr":"10.0.0.0/30","affinity":"host:node-1","allocations":[0,null,0,1],"unallocated":[1],` +
		`"attributes":[{"handle_id":"a"},{"handle_id":"b"}],` +
		`"sequenceNumber":1800000000000000009,"sequenceNumberForAllocation":{"0":1800000000000000008,"1":3}}`
	for _, tt := range []struct{ name, old, replaced, want string }{
		{"sound", "", "", ""},
		{"no sequence numbers", `"sequenceNumber":1800000000000000009,"sequenceNumberForAllocation":{"0":1800000000000000008,"1":3}`, `"deleted":false`, ""},
		{"unknown fields", `"cidr"`, `"later":{},"cidr"`, ""},
		{"IPv6", "10.0.0.0/30", "fd00::/126", ""},
		{"not JSON", "{", "[", "decode block"},
		{"no cidr", `"10.0.0.0/30"`, `""`, "is not that of a block"},
		{"cidr of an address within", "10.0.0.0/30", "10.0.0.1/30", "is not that of a block"},
		{"cidr of another size", "10.0.0.0/30", "10.0.0.0/29", "4 allocations, want 8"},
		{"huge cidr", "10.0.0.0/30", "fd00::/64", "too large for a block"},
		{"attribute out of range", "[0,null,0,1]", "[0,null,0,2]", "ordinal 3 has attribute 2 of 2"},
		{"negative attribute", "[0,null,0,1]", "[0,null,0,-1]", "ordinal 3 has attribute -1 of 2"},
		{"fractional attribute", "[0,null,0,1]", "[0,null,0,1.5]", "ordinal 3 has attribute 1.5 of 2"},
		{"unused attribute", "[0,null,0,1]", "[0,null,0,0]", "attribute 1 is nobody's"},
		{"neither allocated nor unallocated", `"unallocated":[1]`, `"unallocated":[]`, "ordinal 1 is free and 0 times unallocated"},
		{"twice unallocated", `"unallocated":[1]`, `"unallocated":[1,1]`, "ordinal 1 is free and 2 times unallocated"},
		{"allocated and unallocated", `"unallocated":[1]`, `"unallocated":[1,2]`, "ordinal 2 is allocated and unallocated"},
		{"unallocated out of range", `"unallocated":[1]`, `"unallocated":[1,4]`, "unallocated ordinal 4 of 4"},
		{"sequence number that is none", "1800000000000000009", "1.8e18", "sequence number"},
		{"sequence number of the future", `"0":1800000000000000008`, `"0":1800000000000000009`, "ordinal 0 has sequence number"},
		{"sequence number of no ordinal", `"1":3`, `"4":3`, "sequence number of ordinal 4 of 4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			content := strings.Replace(sound, tt.old, tt.replaced, 1)
			if tt.old != "" && content == sound {
				t.Fatalf("no %s in the block", tt.old)
			}
			err := calico.Invariants(content)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("invariants of %s: %v, want %q", content, err, tt.want)
			}
		})
	}
}
