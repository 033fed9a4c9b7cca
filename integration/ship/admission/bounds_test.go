package admission_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// What the account that restores creates or adds is as short as what a run releases, so that its
// token does not fill etcd. Programs such as Velero label every object: a few labels come back.
func TestWhatIsRestoredIsShort(t *testing.T) {
	f := newFixture(t)
	const counts = `"10.9.0.0/26":1`
	handle := newHandle("k8s-pod-network."+sandbox, counts)
	held := reservation("10.0.0.9", `{"podref":"shop/nine"}`, ``)
	var writes []write
	for _, o := range []struct{ kind, by, json string }{
		{"handle", "writes", handle}, {"reservation", "writes", held},
	} {
		try := func(name, by, metadata string) {
			writes = append(writes, write{name + " in a " + o.kind, by, "create", o.kind + ": ",
				strings.Replace(strings.Replace(o.json, `,"annotations":{}`, ``, 1), `"metadata":{`, `"metadata":{`+metadata+`,`, 1)})
		}
		try("a few labels and annotations", "", `"labels":{`+pairs(16, 20)+`},"annotations":{`+pairs(16, 200)+`}`)
		try("an owner", "", `"ownerReferences":[`+owner(1, 9)+`]`)
		try("many labels", o.by, `"labels":{`+pairs(17, 20)+`}`)
		try("many annotations", o.by, `"annotations":{`+pairs(17, 20)+`}`)
		try("long annotations", o.by, `"annotations":{`+pairs(16, 250)+`}`)
		try("an annotation of 250 KB", o.by, `"annotations":{`+pairs(1, 250_000)+`}`)
		try("many owners", o.by, `"ownerReferences":[`+owner(17, 9)+`]`)
		try("a long owner", o.by, `"ownerReferences":[`+owner(1, 4096)+`]`)
		try("a finalizer", o.by, `"finalizers":["example.com/x"]`)
	}
	spec := func(object, more string) string { return strings.Replace(object, `"spec":{`, `"spec":{`+more+`,`, 1) }
	var many []string
	for i := range 17 {
		many = append(many, fmt.Sprintf(`"10.9.%d.0/26":1`, i))
	}
	const h = "handle: "
	f.each(reap.RestoreAccount, append(writes, []write{
		{"a handleID of 1.2 MiB", "writes", "create", h, strings.Replace(handle, `"handleID":"`, `"handleID":"`+strings.Repeat("a", 1200<<10), 1)},
		{"a long field of a handle", "writes", "create", h, spec(handle, `"x":"`+strings.Repeat("a", 4096)+`"`)},
		{"16 blocks of a handle", "", "create", h, newHandle("k8s-pod-network."+sandbox, strings.Join(many[1:], ","))},
		{"17 blocks of a handle", "writes", "create", h, newHandle("k8s-pod-network."+sandbox, strings.Join(many, ","))},
		{"17 blocks of a handle that is there", "writes", "patch", "handle: h1", `[{"op":"add","path":"/spec/block","value":{"10.1.0.0/26":2,"10.2.0.0/26":1,` + strings.Join(many[:15], ",") + `}}]`},
	}...))
	attribute := func(size int) func(*blockSpec) {
		return func(b *blockSpec) {
			b.Attributes[3] = map[string]any{"handle_id": "k8s-pod-network." + sandbox, "secondary": map[string]any{"pod": strings.Repeat("a", size)}}
		}
	}
	f.each(reap.RestoreAccount, tried(t, theBlock().take(9, "h9"), []changed{
		{"the longest names in an attribute", "", attribute(253 + 63 + 253 + 253)},
		{"a long attribute", "writes", attribute(2048)},
		{"an attribute of 1.4 MB", "writes|another error", attribute(1_400_000)},
	}))
}

// pairs are that many pairs of a key and a value of so many characters.
func pairs(n, size int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"example.com/%d":"%s"`, i, strings.Repeat("a", size)))
	}
	return strings.Join(all, ",")
}

// owner is that many owners, whose UIDs have so many characters.
func owner(n, size int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","name":"a-%d","uid":"%s%d"}`, i, strings.Repeat("a", size), i))
	}
	return strings.Join(all, ",")
}
