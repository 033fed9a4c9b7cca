package admission_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// The accounts that release may take allocations out of a pool, and nothing else; the
// account that restores may put some in.
func TestPoolsOnlyShrinkOrAreRestored(t *testing.T) {
	f := newFixture(t)
	const pool, spec = "pool: kube-system/pool", "/spec/allocations/"
	add := `[{"op":"add","path":"` + spec + `9","value":{"id":"c9","podref":"shop/nine","ifname":"net1"}}]`
	remove := `[{"op":"remove","path":"` + spec + `1"}]`
	never := []write{
		{"change an owner", "writes", "patch", pool, `[{"op":"replace","path":"` + spec + `1/podref","value":"evil/pod"}]`},
		{"change a sandbox", "writes", "patch", pool, `[{"op":"replace","path":"` + spec + `1/id","value":"evil"}]`},
		{"change an interface", "writes", "patch", pool, `[{"op":"remove","path":"` + spec + `1/ifname"}]`},
		{"move an allocation", "writes", "patch", pool, `[{"op":"move","from":"` + spec + `1","path":"` + spec + `7"}]`},
		{"exchange two allocations", "writes", "patch", pool,
			`[{"op":"move","from":"` + spec + `1","path":"` + spec + `7"},{"op":"move","from":"` + spec + `2","path":"` + spec + `1"},{"op":"move","from":"` + spec + `7","path":"` + spec + `2"}]`},
		{"spoil the range", "writes", "patch", pool, `[{"op":"replace","path":"/spec/range","value":"10.0.0.0/32"}]`},
		{"add a label", "writes", "patch", pool, `[{"op":"add","path":"/metadata/labels/x","value":"y"}]`},
		{"change a label", "writes", "patch", pool, `[{"op":"replace","path":"/metadata/labels/a","value":"y"}]`},
		{"remove the labels", "writes", "patch", pool, `[{"op":"remove","path":"/metadata/labels"}]`},
		{"add an annotation", "writes", "patch", pool, `[{"op":"add","path":"/metadata/annotations","value":{"x":"y"}}]`},
		{"add a finalizer", "writes", "patch", pool, `[{"op":"add","path":"/metadata/finalizers","value":["example.com/x"]}]`},
		{"add an owner", "writes", "patch", pool,
			`[{"op":"add","path":"/metadata/ownerReferences","value":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"1"}]}]`},
		{"remove one and add another", "writes", "patch", pool, remove[:len(remove)-1] + "," + add[1:]},
		{"delete a pool", "other", "delete", pool, ``},
		{"delete all pools", "other", "collect", "pool: kube-system/", ``},
		{"create a pool", "other", "create", "pool: ",
			`{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"IPPool","metadata":{"namespace":"kube-system","name":"new"},"spec":{"range":"10.3.0.0/24","allocations":{}}}`},
	}
	release := append([]write{
		{"remove an allocation", "", "patch", pool, remove},
		{"remove all", "", "patch", pool, `[{"op":"remove","path":"` + spec + `1"},{"op":"remove","path":"` + spec + `2"}]`},
		{"change nothing", "", "patch", pool, `[]`},
		{"add an allocation", "writes", "patch", pool, add},
		{"add one to an empty pool", "writes", "patch", "pool: kube-system/other", add},
	}, never...)
	f.releasing(release...)
	f.each(reap.RestoreAccount, append([]write{
		{"add an allocation", "", "patch", pool, add},
		{"add one to an empty pool", "", "patch", "pool: kube-system/other", add},
		{"remove an allocation", "writes", "patch", pool, remove},
	}, never...))
}

// A new allocation has a key that the plugin reads as an address of the range, and a value of a
// usual size. Without a range that the plugin can read, there is none.
func TestAllocationsAreRestoredIntoTheirRange(t *testing.T) {
	f := newFixture(t)
	broken := []string{"", "0", "1"}
	for i, tt := range []struct {
		cidr       string
		good, evil []string
	}{
		{"10.0.0.0/24", []string{"0", "1", "99", "255"}, []string{
			"256", "1000", "-1", "-0", "01", "00", "+1", "", " 1", "1 ", "1.0", "1e1", "0x1", "a", "1/podref", "10.0.0.1",
			"9223372036854775808", "9999999999999999999", "10000000000000000000", "18446744073709551617",
		}},
		{"10.4.0.0/16", []string{"65535"}, []string{"65536"}},
		{"10.0.0.128/25", []string{"127"}, []string{"128"}},
		{"192.168.255.252/30", []string{"3"}, []string{"4"}},
		{"10.0.0.7/32", []string{"0"}, []string{"1"}},
		{"0.0.0.0/0", []string{"4294967295"}, []string{"4294967296"}},
		{"10.10.10.5/16", []string{"0", "62970"}, []string{"62971", "65535"}}, // offsets count from 10.10.10.5
		{"fd00::/64", []string{"0", "1", "4294967296", "9223372036854775807"}, []string{"9223372036854775808", "9999999999999999999", "18446744073709551615", "-1", "01"}},
		{"2001:db8:0:10::/60", []string{"9223372036854775807"}, nil},
		{"fd00::/65", []string{"9223372036854775807"}, []string{"9223372036854775808"}},
		{"fd00::/66", []string{"4611686018427387903"}, []string{"4611686018427387904"}},
		{"fd00:1:2:3:4:5:6:0/112", []string{"65535"}, []string{"65536"}},
		{"fd00::100/120", []string{"255"}, []string{"256"}},
		{"fd00::5/128", []string{"0"}, []string{"1"}},
		{"::/0", []string{"9223372036854775807"}, nil},
		{"", nil, broken}, {"x", nil, broken}, {"10.0.0.0", nil, broken}, {"10.0.0/24", nil, broken}, {"10.0.0.0/", nil, broken},
		{"10.0.0.0/33", nil, broken}, {"10.0.0.0/-1", nil, broken}, {"10.0.0.256/24", nil, broken}, {"10.0.0.0/24/1", nil, broken},
		{"10.0.0.0-10.0.0.9/24", nil, broken}, {"fd00::", nil, broken}, {"fd00::/129", nil, broken}, {"fd00/64", nil, broken}, {"::ffff:10.0.0.0/120", nil, broken},
	} {
		name := fmt.Sprint("range-", i)
		f.create("pool", `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"IPPool","metadata":{"namespace":"kube-system","name":"`+name+`"},
			"spec":{"range":"`+tt.cidr+`","allocations":{}}}`)
		var writes []write
		for by, keys := range map[string][]string{"": tt.good, "writes": tt.evil} {
			for _, key := range keys {
				writes = append(writes, write{fmt.Sprintf("add %q to %s", key, tt.cidr), by, "patch", "pool: kube-system/" + name,
					`[{"op":"add","path":"/spec/allocations/` + strings.ReplaceAll(key, "/", "~1") + `","value":{"id":"c","podref":"shop/web","ifname":"net1"}}]`})
			}
		}
		f.each(reap.RestoreAccount, writes)
	}
	var writes []write
	long := strings.Repeat("a", 513)
	for value, by := range map[string]string{
		`{"id":"","podref":""}`:                                   "", // with pods.unnamed, a run releases it
		`{"id":"` + long[1:] + `","podref":"` + long[4:] + `/a"}`: "",
		`{"id":"` + long + `","podref":"shop/web"}`:               "writes",
		`{"id":"c","podref":"` + long[2:] + `/a"}`:                "writes",
		`{"id":"c","podref":"shop/web","ifname":"` + long + `"}`:  "writes",
		`{"id":"c","podref":"web"}`:                               "writes",
		`{"id":"c","podref":"shop/"}`:                             "writes",
		`{"id":"c","podref":"/web"}`:                              "writes",
		`{"id":"c","podref":"shop/web/0"}`:                        "writes",
	} {
		writes = append(writes, write{"add " + value[:20], by, "patch", "pool: kube-system/pool", `[{"op":"add","path":"/spec/allocations/9","value":` + value + `}]`})
	}
	f.each(reap.RestoreAccount, writes)
}
