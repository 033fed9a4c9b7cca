package calico

import (
	"fmt"
	"strings"
	"testing"
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
		{"attribute without an address", `[0,null,0,1]`, `[0,null,0,0]`, "attribute 1 belongs to no address"},
		{"free twice", `"unallocated":[1]`, `"unallocated":[1,1]`, "ordinal 1 is unallocated twice"},
		{"free beyond the last", `"unallocated":[1]`, `"unallocated":[1,4]`, "unallocated ordinal 4 is out of range"},
		{"free and allocated", `"unallocated":[1]`, `"unallocated":[1,0]`, "ordinal 0 is both allocated and unallocated"},
		{"neither free nor allocated", `"unallocated":[1]`, `"unallocated":[]`, "ordinal 1 is neither allocated nor unallocated"},
		{"too few allocations", `[0,null,0,1]`, `[0,null,1]`, "3 allocations for 4 addresses"},
		{"CIDR that is a name", `10.0.0.0/30`, `node-1`, "cidr"},
		{"no CIDR", `"cidr":`, `"CIDR":`, "cidr"},
		{"CIDR that begins inside of a range", `10.0.0.0/30`, `10.0.0.2/30`, "10.0.0.2/30 does not begin at a range's first address"},
		{"CIDR of everything", `10.0.0.0/30`, `0.0.0.0/0`, "larger than any block"},
		{"index with a fraction", `[0,null,0,1]`, `[0,null,0,1.5]`, "decode"},
		{"number in a string", `1800000000000000007`, `"1800000000000000007"`, "decode"},
		{"number too great", `1800000000000000007`, `18446744073709551616`, "decode"},
		{"attribute of a wrong type", `"handle_id":"net.b"`, `"handle_id":7`, "attribute 1"},
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
	ofPod := `{"handle_id":"net.` + strings.Repeat("a", 64) + `","secondary":{"namespace":"net","pod":"` + strings.Repeat("a", 64) + `"}}`
	if got := token(ofPod, ``); got != "" {
		t.Errorf("the token of an allocation whose handle names its pod is %q, want none", got)
	}
}

// Promise 4. An address goes from one sandbox of a pod to the next, as a static address does. The
// two allocations have no token in common, regardless of the version of Calico. One with a number
// or the handle of a sandbox has a token.
func TestNoTwoSandboxesHaveTheSameToken(t *testing.T) {
	had := make(map[string]int) // the sandbox, by token
	for sandbox := range 2 {
		ofSandbox := fmt.Sprintf(`"k8s-pod-network.%064x"`, sandbox)
		for _, handle := range []string{`null`, `"default.web-0"`, ofSandbox} {
			for _, attributes := range []string{`null`, `{"namespace":"default","pod":"web-0","node":"node-1"}`} {
				for _, number := range []string{``, fmt.Sprintf(`,"sequenceNumberForAllocation":{"0":%d}`, sandbox)} {
					token := mustRead(t, shapes[1].stored(blocks, "10.0.0.0/32",
						`{"cidr":"10.0.0.0/32","allocations":[0],"unallocated":[],"attributes":[{"handle_id":`+
							handle+`,"secondary":`+attributes+`}]`+number+`}`)).token(0)
					if before, known := had[token]; token != "" && known && before != sandbox {
						t.Errorf("the two sandboxes have the same token with handle %s, attributes %s", handle, attributes)
					}
					if token == "" && (number != "" || handle == ofSandbox) {
						t.Errorf("no token with handle %s, attributes %s%s", handle, attributes, number)
					}
					had[token] = sandbox
				}
			}
		}
	}
}
