package admission_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Writes by other means than a JSON patch, and odd values.
func TestOddWritesAreRefused(t *testing.T) {
	f := newFixture(t)
	const spec = "/spec/allocations"
	f.each(reap.RunAccount, []write{
		{"remove the map", "pools|another error", "patch", "pool: kube-system/pool", `[{"op":"remove","path":"` + spec + `"}]`},
		{"null the map", "|pools|another error", "patch", "pool: kube-system/pool", `[{"op":"replace","path":"` + spec + `","value":null}]`},
		{"null an entry, which removes it", "", "patch", "pool: kube-system/pool", `[{"op":"replace","path":"` + spec + `/1","value":null}]`},
		{"empty an entry", "pools|another error", "patch", "pool: kube-system/pool", `[{"op":"replace","path":"` + spec + `/1","value":{}}]`},
		{"range as number", "pools|another error", "patch", "pool: kube-system/pool", `[{"op":"replace","path":"/spec/range","value":1}]`},
		{"status", "other|another error", "patch", "pool: kube-system/pool status", `[]`},
		{"scale", "other|another error", "patch", "pool: kube-system/pool scale", `[]`},
		{"block status", "other|another error", "patch", "block: block status", `[]`},
	})
	f.each(reap.RunAccount, tried(t, theBlock().free(1), []changed{
		{"fine", "", func(*blockSpec) {}},
		{"negative ordinal", "another error", func(b *blockSpec) { b.Unallocated[len(b.Unallocated)-1] = -1 }},
		{"ordinal beyond", "another error", func(b *blockSpec) { b.Unallocated[len(b.Unallocated)-1] = 64 }},
		{"attributes twice", "writes", func(b *blockSpec) { b.Attributes = append(b.Attributes, b.Attributes[0]) }},
		{"one attribute of two addresses", "writes", func(b *blockSpec) { b.Allocations[0] = new(1) }},
		{"negative index", "writes", func(b *blockSpec) { b.Allocations[0] = new(-1) }},
		{"no attributes", "another error", func(b *blockSpec) { b.Attributes = nil }},
		{"no numbers", "writes", func(b *blockSpec) { b.Numbers = nil }},
		{"null unallocated", "blocks|another error", func(b *blockSpec) { b.Unallocated = nil }},
	}))
	f.each(reap.RestoreAccount, tried(t, theBlock().take(9, "h9"), []changed{
		{"fine", "", func(*blockSpec) {}},
		{"number of odd spelling", "writes", func(b *blockSpec) { b.Numbers["+9"] = 3 }},
		{"number of zeros", "writes", func(b *blockSpec) { b.Numbers["09"] = 3 }},
		{"attributes permuted with a change", "writes", func(b *blockSpec) { b.Attributes[0], b.Attributes[1] = b.Attributes[1], b.Attributes[0] }},
		{"negative number", "", func(b *blockSpec) { b.Numbers["9"] = -3 }},
	}))

	apply := func(kind, namespace, name, body string) error {
		_, err := f.as[reap.RunAccount].Resource(resources[kind]).Namespace(namespace).Patch(t.Context(), name, types.ApplyPatchType, []byte(body),
			metav1.PatchOptions{FieldManager: "whereabouts", Force: new(true), DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for name, c := range map[string]struct{ by, kind, namespace, name, body string }{
		"apply adds":    {"writes", "pool", "kube-system", "pool", `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"IPPool","metadata":{"name":"N"},"spec":{"allocations":{"9":{"id":"a","podref":"a/b"}}}}`},
		"apply creates": {"other", "pool", "kube-system", "none", `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"IPPool","metadata":{"name":"N"},"spec":{"range":"10.0.0.0/24","allocations":{}}}`},
		"apply owner":   {"writes", "reservation", "kube-system", "10.0.0.1", `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"OverlappingRangeIPReservation","metadata":{"name":"N"},"spec":{"podref":"evil/pod"}}`},
	} {
		if by, err := refusedBy(apply(c.kind, c.namespace, c.name, strings.Replace(c.body, `"N"`, `"`+c.name+`"`, 1))); by != c.by {
			t.Errorf("%s: %q, want %q: %v", name, by, c.by, err)
		}
	}
}

// A tombstone keeps the spec that it replaces, with any values in it.
func TestTombstoneKeepsOddSpecs(t *testing.T) {
	f := newFixture(t)
	for name, spec := range map[string]string{
		"10.0.1.1": `{"podref":"shop/a\\u0062","containerid":"c1","ifname":"net1"}`,
		"10.0.1.2": `{"podref":"shop/a","containerid":"c\"1","ifname":"net1"}`,
		"10.0.1.3": `{"podref":"shop/a"}`,
		"10.0.1.4": `{"podref":"shop/a","containerid":"","ifname":""}`,
		"10.0.1.5": `{"podref":"shop/ü<&>","containerid":"a b"}`,
	} {
		f.create("reservation", reservation(name, spec, ``))
	}
	const podref = `{"op":"replace","path":"/spec/podref","value":"_ip-reaper/_released"}`
	kept := func(spec string) string {
		return "[" + podref + `,{"op":"add","path":"/metadata/annotations","value":{"ip-reaper/spec":` + spec + `}}]`
	}
	f.each(reap.RunAccount, []write{
		{"keep another pod by an escape", "writes", "patch", "reservation: kube-system/10.0.1.1",
			kept(`"{\"containerid\":\"c1\",\"ifname\":\"net1\",\"podref\":\"shop/a\\u0062\"}"`)},
		{"keep the pod of a backslash", "writes", "patch", "reservation: kube-system/10.0.1.1",
			kept(`"{\"containerid\":\"c1\",\"ifname\":\"net1\",\"podref\":\"shop/a\\\\u0062\"}"`)},
		{"keep a pod alone", "", "patch", "reservation: kube-system/10.0.1.3", kept(`"{\"podref\":\"shop/a\"}"`)},
		{"keep empty fields", "", "patch", "reservation: kube-system/10.0.1.4", kept(`"{\"containerid\":\"\",\"ifname\":\"\",\"podref\":\"shop/a\"}"`)},
		{"keep with a duplicate instead", "writes", "patch", "reservation: kube-system/10.0.1.4", kept(`"{\"containerid\":\"\",\"podref\":\"shop/a\",\"podref\":\"shop/a\"}"`)},
		{"keep html", "", "patch", "reservation: kube-system/10.0.1.5", kept(`"{\"containerid\":\"a b\",\"podref\":\"shop/ü<&>\"}"`)},
		{"keep spaces", "writes", "patch", "reservation: kube-system/10.0.1.3", kept(`"{ \"podref\":\"shop/a\" }"`)},
		{"keep a suffix", "writes", "patch", "reservation: kube-system/10.0.1.3", kept(`"{\"podref\":\"shop/a\"}}"`)},
	})
}
