package run_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// Promise 1. What explain prints to release an address, and a restore of an address, act on that one alone:
// the 16 others that are due stay, and so does what else could be put back.
func TestWhatIsPrintedForAnAddressActsOnThatOneAlone(t *testing.T) {
	f := newStranger(t)
	f.must(f.CreateNamespace(t.Context(), "ip-reaper"))
	f.must(f.CreateNode(t.Context(), "n1", true))
	f.live("web", cluster.OnNode("n1"))
	var leaked []string
	for i := range 17 {
		leaked = append(leaked, f.leak(fmt.Sprint("gone-", i)))
	}
	left := func(from map[string]string, owners ...string) map[string]string {
		from = maps.Clone(from)
		maps.DeleteFunc(from, func(_, owner string) bool { return slices.Contains(owners, owner) })
		return from
	}
	before := f.owners()
	const atOnce = " --grace-period=0s --min-age=0s"
	explained := f.typed("ip-reaper explain " + leaked[8] + atOnce)
	printed := regexp.MustCompile(`(?m)^ +\$ (ip-reaper run .* --ip ` + regexp.QuoteMeta(leaked[8]) + ` .*--dry-run=false)$`).FindStringSubmatch(explained)
	if printed == nil {
		t.Fatalf("explain prints no command that releases the address:\n%s", explained)
	}
	f.typed(printed[1])
	want := left(before, "shop/gone-8 sandbox-of-gone-8")
	if diff := cmp.Diff(want, f.owners()); diff != "" || len(want) != 17 {
		t.Errorf("after a run of %s, %d of 18 should be left (-want +got):\n%s", leaked[8], len(want), diff)
	}

	released := f.typed("ip-reaper --context demo --dry-run=false" + atOnce)
	undo := regexp.MustCompile(`restore .*--run (\S+)`).FindStringSubmatch(released)
	if undo == nil {
		t.Fatalf("the run prints no restore:\n%s", released)
	}
	f.typed("ip-reaper restore --context demo --run " + undo[1] + " --ip ::ffff:" + leaked[3] + " --dry-run=false")
	owners := []string{}
	for _, owner := range f.owners() {
		owners = append(owners, owner)
	}
	slices.Sort(owners)
	if diff := cmp.Diff([]string{"shop/gone-3 sandbox-of-gone-3", "shop/web sandbox-of-web"}, owners); diff != "" {
		t.Errorf("after a restore of %s (-want +got):\n%s", leaked[3], diff)
	}
}
