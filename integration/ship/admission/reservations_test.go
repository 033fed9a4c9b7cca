package admission_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// The accounts that release may put a tombstone into an overlapping reservation, take
// it out again, and delete the reservation that has one; the account that restores may
// create one and take a tombstone out.
func TestReservationsOnlyGoByTheirTombstone(t *testing.T) {
	f := newFixture(t)
	const (
		whole    = "reservation: kube-system/10.0.0.1" // c1, net1, shop/one
		marked   = "reservation: kube-system/10.0.0.2" // was c2, net1, shop/two
		nameless = "reservation: kube-system/10.0.0.4" // a tombstone that does not say whose it was
		podref   = `{"op":"replace","path":"/spec/podref","value":"_ip-reaper/_released"}`
		unmark   = `{"op":"remove","path":"/metadata/annotations/ip-reaper~1spec"}`
	)
	kept := func(spec string) string {
		return `{"op":"add","path":"/metadata/annotations","value":{"ip-reaper/spec":"` + spec + `"}}`
	}
	owner := func(name string) string { return `{"op":"replace","path":"/spec/podref","value":"` + name + `"}` }
	const (
		good   = `{\"containerid\":\"c1\",\"ifname\":\"net1\",\"podref\":\"shop/one\"}`
		turned = `{\"podref\":\"shop/one\",\"ifname\":\"net1\",\"containerid\":\"c1\"}`
	)
	mark := "[" + podref + "," + kept(good) + "]"
	both := []write{
		{"put back the spec", "", "patch", marked, "[" + owner("shop/two") + "," + unmark + "]"},
		{"put back another owner", "writes", "patch", marked, "[" + owner("evil/pod") + "," + unmark + "]"},
		{"put back no owner", "writes", "patch", marked, "[" + owner("") + "," + unmark + "]"},
		{"put back another sandbox", "writes", "patch", marked,
			"[" + owner("shop/two") + "," + unmark + `,{"op":"replace","path":"/spec/containerid","value":"evil"}]`},
		{"put back without an interface", "writes", "patch", marked,
			"[" + owner("shop/two") + "," + unmark + `,{"op":"remove","path":"/spec/ifname"}]`},
		{"put back and leave the annotation", "writes", "patch", marked, "[" + owner("shop/two") + "]"},
		{"put back what an annotation says that comes with it", "writes", "patch", marked,
			"[" + owner("evil/pod") + "," + kept(`{\"containerid\":\"c2\",\"ifname\":\"net1\",\"podref\":\"evil/pod\"}`) + "]"},
		{"name an owner for a nameless tombstone", "writes", "patch", nameless, "[" + owner("evil/pod") + "]"},
		{"change the kept spec", "writes", "patch", marked,
			`[{"op":"replace","path":"/metadata/annotations/ip-reaper~1spec","value":"{\"podref\":\"evil/pod\"}"}]`},
		{"change an owner", "writes", "patch", whole, "[" + owner("evil/pod") + "]"},
		{"change a sandbox", "writes", "patch", whole, `[{"op":"replace","path":"/spec/containerid","value":"evil"}]`},
		{"change an interface", "writes", "patch", whole, `[{"op":"replace","path":"/spec/ifname","value":"net9"}]`},
		{"add an annotation", "writes", "patch", whole, `[{"op":"add","path":"/metadata/annotations","value":{"x":"y"}}]`},
		{"put back and lose an annotation", "writes", "patch", marked, "[" + owner("shop/two") + `,{"op":"remove","path":"/metadata/annotations"}]`},
		{"put back and add a finalizer", "writes", "patch", marked,
			"[" + owner("shop/two") + "," + unmark + `,{"op":"add","path":"/metadata/finalizers","value":["example.com/x"]}]`},
	}
	marks := []write{
		{"put a tombstone", "", "patch", whole, mark},
		{"put a tombstone, the fields in another order", "", "patch", whole, "[" + podref + "," + kept(turned) + "]"},
		{"put a tombstone without its annotation", "writes", "patch", whole, "[" + podref + "]"},
		{"put a tombstone with a false owner", "writes", "patch", whole,
			"[" + podref + "," + kept(`{\"containerid\":\"c1\",\"ifname\":\"net1\",\"podref\":\"evil/pod\"}`) + "]"},
		{"put a tombstone with two owners", "writes", "patch", whole,
			"[" + podref + "," + kept(`{\"containerid\":\"c1\",\"ifname\":\"net1\",\"podref\":\"shop/one\",\"podref\":\"evil/pod\"}`) + "]"},
		{"put a tombstone with less than the spec", "writes", "patch", whole, "[" + podref + "," + kept(`{\"podref\":\"shop/one\"}`) + "]"},
		{"put a tombstone with more than the spec", "writes", "patch", whole,
			"[" + podref + "," + kept(`{\"containerid\":\"c1\",\"ifname\":\"net1\",\"podref\":\"shop/one\",\"x\":1}`) + "]"},
		{"put a tombstone with a spec that is no JSON", "writes", "patch", whole,
			"[" + podref + "," + kept(`\"containerid\":\"c1\",\"ifname\":\"net1\",\"podref\":\"shop/one\"`) + "]"},
		{"put a tombstone and change the sandbox", "writes", "patch", whole,
			"[" + podref + "," + kept(good) + `,{"op":"replace","path":"/spec/containerid","value":"evil"}]`},
		{"put a tombstone and add a label", "writes", "patch", whole,
			"[" + podref + "," + kept(good) + `,{"op":"add","path":"/metadata/labels","value":{"x":"y"}}]`},
		{"put a tombstone over a tombstone", "writes", "patch", marked,
			"[" + kept(`{\"containerid\":\"c2\",\"ifname\":\"net1\",\"podref\":\"_ip-reaper/_released\"}`) + "]"},
		{"delete a tombstone", "", "delete", marked, ``},
		{"delete a reservation without a tombstone", "writes", "delete", whole, ``},
		{"delete all reservations", "writes", "collect", "reservation: kube-system/", ``},
		{"create a reservation", "other", "create", "reservation: ", reservation("10.0.0.9", `{"podref":"evil/pod"}`, ``)},
	}
	f.releasing(slices.Concat(both, marks)...)
	f.each(reap.RestoreAccount, both)
	f.each(reap.RestoreAccount, []write{
		{"create a reservation", "", "create", "reservation: ", reservation("10.0.0.9", `{"podref":"shop/nine","ifname":"net1"}`, `"a":"b"`)},
		{"create one of IPv6 in a network", "", "create", "reservation: ", reservation("lan-1-2001-db8-1--9", `{"podref":"shop/nine"}`, ``)},
		{"create one of the first address of a range of IPv6", "", "create", "reservation: ", reservation("fd00--0", `{"podref":"shop/nine"}`, ``)},
		{"create one of no address", "writes", "create", "reservation: ", reservation("nine", `{"podref":"shop/nine"}`, ``)},
		{"create one of a part of an address", "writes", "create", "reservation: ", reservation("lan-10.0.9", `{"podref":"shop/nine"}`, ``)},
		{"create one of more than an address", "writes", "create", "reservation: ", reservation("10.0.0.9-24", `{"podref":"shop/nine"}`, ``)},
		{"create one with a long field", "writes", "create", "reservation: ",
			reservation("10.0.0.9", `{"podref":"shop/nine","ifname":"`+strings.Repeat("a", 513)+`"}`, ``)},
		{"create one for a part of a pod", "writes", "create", "reservation: ", reservation("10.0.0.9", `{"podref":"shop/nine/a"}`, ``)},
		{"create a tombstone", "writes", "create", "reservation: ", reservation("10.0.0.9", `{"podref":"_ip-reaper/_released"}`, ``)},
		{"create a reservation for no pod", "writes", "create", "reservation: ", reservation("10.0.0.9", `{"podref":"nine"}`, ``)},
		{"create one that stays for ever", "writes", "create", "reservation: ",
			`{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"OverlappingRangeIPReservation",
			"metadata":{"namespace":"kube-system","name":"10.0.0.9","finalizers":["example.com/x"]},"spec":{"podref":"shop/nine"}}`},
		{"put a tombstone", "writes", "patch", whole, mark},
		{"delete a tombstone", "other", "delete", marked, ``},
		{"delete a reservation", "other|writes", "delete", whole, ``},
		{"delete all reservations", "other|writes", "collect", "reservation: kube-system/", ``},
	})
}
