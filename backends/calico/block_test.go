package calico

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper"
)

func TestBlocksOfEveryCalicoAreRead(t *testing.T) {
	for _, tt := range []struct {
		name  string
		value string
		want  string
	}{
		{"today's", threeOfFour,
			`10.0.0.0/30 #1800000000000000007 10.0.0.0="net.a"@1800000000000000003 10.0.0.2="net.a"@1800000000000000004 10.0.0.3="net.b"@1800000000000000005 free[1]`},
		{"before there were sequence numbers",
			`{"cidr":"10.0.0.0/31","affinity":"host:node-1","strictAffinity":false,"allocations":[0,null],"unallocated":[1],"attributes":[{"handle_id":"net.a","secondary":null}]}`,
			`10.0.0.0/31 #0 10.0.0.0="net.a"@0 free[1]`},
		{"with the affinity as it was called first",
			`{"cidr":"10.0.0.0/32","hostAffinity":"node-1","affinity":null,"allocations":[0],"unallocated":[],"attributes":[{"handle_id":"net.a","secondary":{}}]}`,
			`10.0.0.0/32 #0 10.0.0.0="net.a"@0 free[]`},
		{"without an affinity, claimed at a time",
			`{"cidr":"10.0.0.0/32","affinityClaimTime":"2026-03-01T12:00:00Z","affinity_claim_time":null,"allocations":[null],"unallocated":[0],"attributes":[],"sequenceNumber":3,"sequenceNumberForAllocation":{}}`,
			`10.0.0.0/32 #3 free[0]`},
		{"null in empty fields",
			`{"cidr":"10.0.0.0/32","affinity":null,"allocations":[null],"unallocated":[0],"attributes":null,"sequenceNumber":null,"sequenceNumberForAllocation":null,"deleted":null}`,
			`10.0.0.0/32 #0 free[0]`},
		{"full, without a list of free ordinals",
			`{"cidr":"10.0.0.0/32","allocations":[0],"unallocated":null,"attributes":[{"handle_id":null,"secondary":null}],"sequenceNumber":1}`,
			`10.0.0.0/32 #1 10.0.0.0=""@0 free[]`},
		{"a sequence number left of an address that is free",
			`{"cidr":"10.0.0.0/32","allocations":[null],"unallocated":[0],"attributes":[],"sequenceNumber":9,"sequenceNumberForAllocation":{"0":8,"77":5}}`,
			`10.0.0.0/32 #9 free[0]`},
		{"half deleted",
			`{"cidr":"10.0.0.0/32","allocations":[null],"unallocated":[0],"attributes":[],"deleted":true}`,
			`10.0.0.0/32 #0 deleted free[0]`},
		{"the greatest numbers there are",
			`{"cidr":"10.0.0.0/32","allocations":[0],"unallocated":[],"attributes":[{}],"sequenceNumber":18446744073709551615,"sequenceNumberForAllocation":{"0":9007199254740993}}`,
			`10.0.0.0/32 #18446744073709551615 10.0.0.0=""@9007199254740993 free[]`},
		{"IPv6, the free ones in the order in which they were freed",
			`{"cidr":"fd80:24e2::/126","allocations":[null,null,0,null],"unallocated":[3,0,1],"attributes":[{"handle_id":"net.a"}],"sequenceNumberForAllocation":{"2":7}}`,
			`fd80:24e2::/126 #0 fd80:24e2::2="net.a"@7 free[3 0 1]`},
		{"unknown fields",
			`{"cidr":"10.0.0.0/32","Allocations":7,"more":{"cidr":1},"allocations":[0],"unallocated":[],"attributes":[{"new":[1],"handle_id":"net.a"}]}`,
			`10.0.0.0/32 #0 10.0.0.0="net.a"@0 free[]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inShapes(t, func(t *testing.T, s shape) {
				b, err := readBlock(s.stored(blocks, "10.0.0.0/30", tt.value))
				if got := describe(b); err != nil || got != tt.want {
					t.Errorf("readBlock = %s, %v, want %s", got, err, tt.want)
				}
			})
		})
	}
}

func TestBrokenBlocksAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name     string
		old, new string // in threeOfFour
		says     string
	}{
		{"attribute that does not exist", `[0,null,0,1]`, `[0,null,0,2]`, "ordinal 3 has attribute 2, which does not exist"},
		{"attribute below the first", `[0,null,0,1]`, `[0,null,-1,1]`, "ordinal 2 has attribute -1, which does not exist"},
		{"attribute without an address", `[0,null,0,1]`, `[0,null,0,0]`, "attribute 1 belongs to no address"},
		{"free twice", `"unallocated":[1]`, `"unallocated":[1,1]`, "ordinal 1 is unallocated twice"},
		{"free beyond the last", `"unallocated":[1]`, `"unallocated":[1,4]`, "unallocated ordinal 4 is out of range"},
		{"free before the first", `"unallocated":[1]`, `"unallocated":[1,-1]`, "unallocated ordinal -1 is out of range"},
		{"free and allocated", `"unallocated":[1]`, `"unallocated":[1,0]`, "ordinal 0 is both allocated and unallocated"},
		{"neither free nor allocated", `"unallocated":[1]`, `"unallocated":[]`, "ordinal 1 is neither allocated nor unallocated"},
		{"no list of free ones", `"unallocated":[1]`, `"more":[1]`, "ordinal 1 is neither allocated nor unallocated"},
		{"too few allocations", `[0,null,0,1]`, `[0,null,1]`, "3 allocations and 4 addresses"},
		{"too many allocations", `[0,null,0,1]`, `[0,null,0,1,1]`, "5 allocations and 4 addresses"},
		{"no allocations", `"allocations":`, `"Allocations":`, "0 allocations and 4 addresses"},
		{"CIDR that is a name", `10.0.0.0/30`, `node-1`, "cidr"},
		{"address for a CIDR", `10.0.0.0/30`, `10.0.0.0`, "cidr"},
		{"no CIDR", `"cidr":`, `"CIDR":`, "cidr"},
		{"CIDR that begins inside of a range", `10.0.0.0/30`, `10.0.0.2/30`, "10.0.0.2/30 does not begin at a range's first address"},
		{"CIDR of another size", `10.0.0.0/30`, `10.0.0.0/29`, "4 allocations and 8 addresses"},
		{"CIDR of everything", `10.0.0.0/30`, `0.0.0.0/0`, "larger than any block"},
		{"CIDR of everything in IPv6", `10.0.0.0/30`, `::/0`, "larger than any block"},
		{"index with a fraction", `[0,null,0,1]`, `[0,null,0,1.5]`, "decode"},
		{"number in a string", `1800000000000000007`, `"1800000000000000007"`, "decode"},
		{"number below zero", `1800000000000000007`, `-7`, "decode"},
		{"number too great", `1800000000000000007`, `18446744073709551616`, "decode"},
		{"number of an allocation with an exponent", `1800000000000000003`, `1.8e18`, "decode"},
		{"attribute of a wrong type", `"handle_id":"net.b"`, `"handle_id":7`, "attribute 1"},
		{"owner of a wrong type", `"pod":"web-0"`, `"pod":0`, "attribute 0"},
		{"not JSON to its end", `"unallocated":[1]`, `"unallocated":[1`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			value := strings.Replace(threeOfFour, tt.old, tt.new, 1)
			if value == threeOfFour {
				t.Fatalf("threeOfFour does not contain %q", tt.old)
			}
			inShapes(t, func(t *testing.T, s shape) {
				if !strings.HasSuffix(value, "]}") && s.name == "kubernetes" {
					t.Skip("no API server stores that")
				}
				b, err := readBlock(s.stored(blocks, "10.0.0.0/30", value))
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("readBlock = %s, %v, want %q in the error", describe(b), err, tt.says)
				}
			})
		})
	}
}

func TestAddresses(t *testing.T) {
	for _, text := range []string{
		"10.0.0.0/26", "100.112.209.128/26", "255.255.255.192/26", "0.0.0.0/24", "10.255.240.0/20", "10.0.0.7/32",
		"fd80:24e2::/122", "fd00::ff00/120", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffc0/122", "fd00::f000/116",
	} {
		b := block{cidr: prefix(text)}
		want := b.cidr.Addr()
		for ordinal := range 1 << (want.BitLen() - b.cidr.Bits()) {
			if got := b.address(ordinal); got != want {
				t.Fatalf("address %d of %s is %s, want %s", ordinal, text, got, want)
			}
			want = want.Next()
		}
	}
}

func TestTokens(t *testing.T) {
	const numbered = `,"sequenceNumberForAllocation":{"0":41}`
	token := func(attribute, more string) string {
		return mustRead(t, shapes[1].stored(blocks, "10.0.0.0/32",
			`{"cidr":"10.0.0.0/32","allocations":[0],"unallocated":[],"attributes":[`+attribute+`]`+more+`}`)).token(0)
	}
	first := token(`{"handle_id":"net.a","secondary":{"pod":"web-0"}}`, numbered)
	if again := token("{ \"handle_id\": \"net.a\",\n\t\"secondary\": { \"pod\": \"web-0\" } }", numbered); again != first {
		t.Errorf("with other spaces the token is %q, want %q", again, first)
	}
	for name, other := range map[string]string{
		"another sequence number": token(`{"handle_id":"net.a","secondary":{"pod":"web-0"}}`, `,"sequenceNumberForAllocation":{"0":42}`),
		"no sequence number":      token(`{"handle_id":"net.`+strings.Repeat("a", 64)+`","secondary":{"pod":"web-0"}}`, ``),
		"another handle":          token(`{"handle_id":"net.b","secondary":{"pod":"web-0"}}`, numbered),
		"another owner":           token(`{"handle_id":"net.a","secondary":{"pod":"web-1"}}`, numbered),
		"an owner to be":          token(`{"handle_id":"net.a","secondary":{"pod":"web-0"},"alternateOwnerAttrs":{"pod":"web-1"}}`, numbered),
		"an unknown field":        token(`{"handle_id":"net.a","secondary":{"pod":"web-0"},"new":1}`, numbered),
		"a number, no handle":     token(`{"handle_id":null,"secondary":null}`, numbered),
	} {
		if other == "" || other == first {
			t.Errorf("with %s the token is %q, like %q", name, other, first)
		}
	}
	for _, attribute := range []string{
		`{"handle_id":null,"secondary":null}`, `{"handle_id":"","secondary":{"pod":"web-0"}}`, `{}`,
		`{"handle_id":"default.web-0","secondary":null}`,
		`{"handle_id":"default.web-0","secondary":{"namespace":"default","pod":"web-0"}}`,
		`{"handle_id":"net.` + strings.Repeat("a", 64) + `","secondary":{"namespace":"net","pod":"` + strings.Repeat("a", 64) + `"}}`,
	} {
		if got := token(attribute, ``); got != "" {
			t.Errorf("the token of an allocation to %s is %q, want none: it could be any allocation", attribute, got)
		}
	}
}

// This block is from the etcd of a real cluster. Nine addresses are allocated. The
// first is the node's own; its Calico wrote no attributes for such an address.
func TestBlockOfARealCluster(t *testing.T) {
	data, err := os.ReadFile("testdata/etcd_block_of_old_calico.json")
	if err != nil {
		t.Fatal(err)
	}
	l := listingOf([]object{shapes[1].stored(blocks, "100.112.209.128/26", string(data))}, nil, nil)
	if len(l.blocks) != 1 {
		t.Fatalf("the block cannot be read: %v", l.broken)
	}
	pool := l.finish(l.blocks[0])
	if pool.Name != "100.112.209.128/26" || pool.Range != prefix("100.112.209.128/26") || pool.Capacity.String() != "64" {
		t.Errorf("pool %s has range %s and capacity %s", pool.Name, pool.Range, pool.Capacity)
	}
	var got []string
	for _, r := range pool.Allocations {
		got = append(got, r.IP.String())
		ownerless := r.IP == netip.MustParseAddr("100.112.209.128")
		if r.Owner.Pod != (reaper.PodRef{}) || r.Inferred || ownerless != (r.Owner.Sandbox == "") || ownerless != (r.Token == "") || ownerless != (r.Group == "") {
			t.Errorf("listed as %+v, want a sandbox only, and no owner for the first", r)
		}
		if !ownerless && (!isSandboxID(r.Owner.Sandbox) || r.Group != "k8s-pod-network."+r.Owner.Sandbox) {
			t.Errorf("%s has the sandbox %q and the group %q", r.IP, r.Owner.Sandbox, r.Group)
		}
	}
	want := strings.Fields("100.112.209.128 100.112.209.130 100.112.209.144 100.112.209.150 100.112.209.161 " +
		"100.112.209.169 100.112.209.174 100.112.209.183 100.112.209.190")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if i := slices.IndexFunc(pool.Allocations, func(r reaper.Allocation) bool { return r.Key == "33" }); i < 0 ||
		pool.Allocations[i].Owner.Sandbox != "2caf1c8381761431c694771227eec339c5c0bb0ed3f11a6f2067883d5f405b69" {
		t.Error("ordinal 33 does not have the sandbox of its attribute")
	}
}
