package census_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Promise 1. A node that is not ready may still run sandboxes, unless it is fenced or gone. A ready one
// is alive, whatever its taints say.
func TestNodeThatMayStillRunSandboxes(t *testing.T) {
	c := census.New(noon, nil, nil,
		census.Node{Name: "ready", Ready: true}, census.Node{Name: "tainted", Ready: true, OutOfService: true},
		census.Node{Name: "z-away"}, census.Node{Name: "away"}, census.Node{Name: "fenced", OutOfService: true})
	for node, want := range map[string][3]bool{ // unreachable, fenced, off
		"ready": {}, "tainted": {}, "away": {true, false, false}, "fenced": {false, true, true}, "gone": {false, false, true}, "": {},
	} {
		equal(t, "node "+node, [3]bool{c.Unreachable(node), c.Fenced(node), c.Off(node)}, want)
	}
	equal(t, "off without a list of nodes", census.New(noon, nil, nil).Off("gone"), false)
	var away []string
	for _, n := range c.Away() {
		away = append(away, n.Name)
	}
	equal(t, "away", away, []string{"away", "fenced", "z-away"})
}

// Promise 1. Where the node of a sandbox is not known, it may be the one that is ready again. A node that
// joins is ready for the first time.
func TestNodeThatIsReadyAgain(t *testing.T) {
	node := func(name string, ready bool, since, created time.Duration) census.Node {
		return census.Node{Name: name, Ready: ready, Since: noon.Add(since), Created: noon.Add(created)}
	}
	const age = 10 * time.Minute
	long := node("long", true, -time.Hour, -24*time.Hour)
	last := node("last", true, -time.Minute, -24*time.Hour)
	away := node("away", false, 0, -24*time.Hour)
	fresh := node("fresh", true, 0, -age)
	old := node("old", true, 0, -age-1)
	for _, tt := range []struct {
		name  string
		nodes []census.Node
		want  string
	}{
		{"the last one", []census.Node{long, last, away}, "last"},
		{"in the other order", []census.Node{away, last, long}, "last"},
		{"one joins", []census.Node{long, fresh}, "long"},
		{"one is a little older", []census.Node{long, old}, "old"},
		{"none is ready", []census.Node{away}, ""},
	} {
		c := census.New(noon, nil, nil, tt.nodes...)
		equal(t, tt.name, c.ReadyAgain("").Name, tt.want)
	}
	c := census.New(noon, nil, nil, long, away)
	for name, want := range map[string]string{"long": "long", "away": "", "gone": ""} {
		equal(t, "named "+name, c.ReadyAgain(name).Name, want)
	}
}

// Promise 1. A name stands for the nodes that have it among their names, in any case of letters, and for
// those of which one name is the other with a domain behind it; but for none if a node has exactly it.
func TestNodesThatAnotherNameMayStandFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := func(label string) string {
			labels := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "A"}), 1, 3).Draw(t, label)
			return strings.Join(labels, ".")
		}
		nodes := make([]census.Node, rapid.IntRange(0, 4).Draw(t, "nodes"))
		for i := range nodes {
			nodes[i].Name = fmt.Sprint(name("node"), i%2) // some have the same first label
			for range rapid.IntRange(0, 2).Draw(t, "other names") {
				nodes[i].OtherNames = append(nodes[i].OtherNames, name("other name"))
			}
		}
		asked := name("asked")
		if rapid.Bool().Draw(t, "like a node") {
			asked = fmt.Sprint(asked, rapid.IntRange(0, 1).Draw(t, "which"))
		}
		var want []string
		for _, n := range nodes {
			for _, called := range append([]string{n.Name}, n.OtherNames...) {
				x, y := strings.ToLower(called), strings.ToLower(asked)
				if x == y || strings.HasPrefix(x, y+".") || strings.HasPrefix(y, x+".") {
					want = append(want, n.Name)
				}
			}
		}
		if slices.ContainsFunc(nodes, func(n census.Node) bool { return n.Name == asked }) {
			want = nil
		}
		slices.Sort(want)
		want = slices.Compact(want)
		if got := census.New(noon, nil, nil, nodes...).MayBe(asked); !slices.Equal(got, want) {
			t.Fatalf("%s may be %q, want %q, of %+v", asked, got, want, nodes)
		}
	})
	long := strings.Repeat("a.", 130)
	c := census.New(noon, nil, nil, census.Node{Name: "a", OtherNames: []string{long + "a"}}, census.Node{Name: "b", OtherNames: []string{long}})
	equal(t, "a name that is longer than any node's", c.MayBe(long+"a"), nil)
	equal(t, "no name", c.MayBe(""), nil)
	longest := strings.Repeat("a", 253)
	equal(t, "the longest", census.New(noon, nil, nil, census.Node{Name: "n", OtherNames: []string{longest}}).MayBe(longest), []string{"n"})
}

// Promise 2. A StatefulSet brings back the pods of its ordinals.
func TestStatefulSetWantsThePodsOfItsOrdinals(t *testing.T) {
	db := census.StatefulSet{Namespace: "default", Name: "db", Replicas: 3}
	shifted := census.StatefulSet{Namespace: "default", Name: "db", Start: 5, Replicas: 2}
	dashed := census.StatefulSet{Namespace: "default", Name: "db-0", Replicas: 1}
	for _, tt := range []struct {
		name string
		pod  string
		set  census.StatefulSet
		want bool
	}{
		{"the first ordinal", "db-0", db, true},
		{"one too many", "db-3", db, false},
		{"below the start", "db-4", shifted, false},
		{"at the start", "db-5", shifted, true},
		{"the last from the start", "db-6", shifted, true},
		{"beyond the start", "db-7", shifted, false},
		{"scaled to zero", "db-0", census.StatefulSet{Namespace: "default", Name: "db"}, false},
		{"a leading zero is not how it writes ordinals", "db-00", db, false},
		{"no number", "db-x", db, false},
		{"a number that could wrap around", "db-18446744073709551616", db, false},
		{"in another namespace", "db-0", census.StatefulSet{Namespace: "prod", Name: "db", Replicas: 3}, false},
		{"a set whose name ends like an ordinal", "db-0-0", dashed, true},
		{"the namesake of that set's name", "db-0", dashed, false},
		{"no ordinal", "db", db, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			set, wanted := census.New(noon, nil, []census.StatefulSet{tt.set}).Wants(ipam.PodRef{Namespace: "default", Name: tt.pod})
			equal(t, "wanted", wanted, tt.want)
			if wanted {
				equal(t, "set", set, tt.set)
			}
		})
	}
}
