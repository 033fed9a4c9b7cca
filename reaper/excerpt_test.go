package reaper_test

import (
	"errors"
	"iter"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

func TestDocumentIsOfAKind(t *testing.T) {
	for _, tt := range []struct {
		name       string
		apiVersion string
		kind       string
		group      string
		want       bool
	}{
		{"a pod", "v1", "Pod", "", true},
		{"a custom resource", "crd.projectcalico.org/v1", "Pod", "crd.projectcalico.org", true},
		{"of a version to come", "crd.projectcalico.org/v9", "Pod", "crd.projectcalico.org", true},
		{"of another kind", "v1", "PodList", "", false},
		{"of another group", "projectcalico.org/v3", "Pod", "crd.projectcalico.org", false},
		{"of a group that is asked for none", "projectcalico.org/v3", "Pod", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := ipam.Document{APIVersion: tt.apiVersion, Kind: tt.kind}
			if got := d.Is(tt.group, "Pod"); got != tt.want {
				t.Errorf("%+v.Is(%q, Pod) = %t, want %t", d, tt.group, got, tt.want)
			}
		})
	}
}

// excerpt returns an Excerpt that yields these pools and errors.
func excerpt(found ...any) ipam.Excerpt {
	return ipam.Excerpt{Store: "whereabouts", Pools: iter.Seq2[ipam.Pool, error](func(yield func(ipam.Pool, error) bool) {
		for _, f := range found {
			pool, _ := f.(ipam.Pool)
			err, _ := f.(error)
			if !yield(pool, err) {
				return
			}
		}
	})}
}

func TestExcerptCountsAPoolOnce(t *testing.T) {
	changed := webAllocation()
	changed.Token = "t2"
	elsewhere := poolOf(changed)
	elsewhere.Name = "elsewhere"
	const twice = "pool: the files have this pool twice, with different contents; the first one counts"
	for _, tt := range []struct {
		name  string
		pools []any
		want  []string // tokens of the pools, or errors
	}{
		{"the same pool", []any{poolOf(webAllocation()), poolOf(webAllocation())}, []string{"t1"}},
		{"the same pool, with different contents", []any{poolOf(webAllocation()), poolOf(changed)}, []string{"t1", twice}},
		{"two pools", []any{poolOf(webAllocation()), elsewhere}, []string{"t1", "t2"}},
		{"a pool that cannot be read, and once more, readable", []any{&ipam.PoolError{Pool: "pool", Err: errors.New("cut")}, poolOf(webAllocation())},
			[]string{"pool: cut", "t1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for pool, err := range excerpt(tt.pools...).List(t.Context()) {
				var unreadable *ipam.PoolError
				if errors.As(err, &unreadable) {
					got = append(got, err.Error())
					continue
				}
				got = append(got, pool.Allocations[0].Token)
				pool.Allocations[0].Backend = "whereabouts" // as TakeInventory does
			}
			equal(t, "pools", got, tt.want)
		})
	}
}

func TestExcerptReleasesNothing(t *testing.T) {
	errs := excerpt(poolOf(webAllocation())).Release(t.Context(), make([]ipam.Warrant, 2))
	if len(errs) != 2 || !errors.Is(errs[0], ipam.ErrKept) || !errors.Is(errs[1], ipam.ErrKept) {
		t.Errorf("Release = %v, want ErrKept twice", errs)
	}
}
