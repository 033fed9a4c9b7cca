package calico

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// A shape is the form in which a datastore stores Calico's objects.
type shape struct {
	name   string
	stored func(k kind, id, value string) object
}

// shapes are the forms of both datastores.
var shapes = []shape{
	{"kubernetes", func(k kind, id, value string) object {
		resource := map[kind]string{blocks: "IPAMBlock", handles: "IPAMHandle"}[k]
		o, err := readObject(k, json.RawMessage(fmt.Sprintf(
			`{"apiVersion":"crd.projectcalico.org/v1","kind":%q,"metadata":{"name":%q,"uid":"uid-%s",`+
				`"resourceVersion":"7","annotations":{"a":"{\"spec\":1}"}},"spec":%s}`,
			resource, resourceName(k, id), resourceName(k, id), value)))
		if err != nil {
			panic(err)
		}
		return o
	}},
	{"etcd", func(k kind, id, value string) object {
		return object{kind: k, name: etcdKey(k, id), revision: "7", raw: []byte(value)}
	}},
}

// inShapes runs a test in each shape.
func inShapes(t *testing.T, test func(t *testing.T, s shape)) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) { test(t, s) })
	}
}

// mustRead reads a block that must be valid.
func mustRead(t testing.TB, o object) block {
	t.Helper()
	b, err := readBlock(o)
	if err != nil {
		t.Fatalf("read block: %v\n%s", err, o.raw)
	}
	return b
}

// threeOfFour is a block of four addresses. The first and the third belong to one
// sandbox, the fourth to another, and the second is free.
const threeOfFour = `{"affinity":"host:node-1","allocations":[0,null,0,1],"attributes":[` +
	`{"handle_id":"net.a","secondary":{"namespace":"default","node":"node-1","pod":"web-0"}},` +
	`{"handle_id":"net.b","secondary":{"namespace":"default","node":"node-1","pod":"web-1"}}],` +
	`"cidr":"10.0.0.0/30","deleted":false,"sequenceNumber":1800000000000000007,` +
	`"sequenceNumberForAllocation":{"0":1800000000000000003,"2":1800000000000000004,"3":1800000000000000005},` +
	`"strictAffinity":false,"unallocated":[1]}`

// sandbox returns the ID of a sandbox.
func sandbox(n int) string { return fmt.Sprintf("%064x", n) }

// describe returns the decoded values of a block on one line.
func describe(b block) string {
	words := []string{b.cidr.String(), fmt.Sprint("#", b.sequence)}
	if b.deleted {
		words = append(words, "deleted")
	}
	for ordinal, index := range b.allocations {
		if index != nil {
			words = append(words, fmt.Sprintf("%s=%q@%d", b.address(ordinal), b.handleOf(ordinal), b.sequences[fmt.Sprint(ordinal)]))
		}
	}
	return strings.Join(append(words, fmt.Sprint("free", b.unallocated)), " ")
}

// prefix returns a CIDR.
func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }
