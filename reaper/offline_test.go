package reaper_test

import (
	"errors"
	"iter"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
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
		{"of no group at all", "", "Pod", "", false},
		{"of a group without a version", "v1", "Pod", "v1", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := reaper.Document{APIVersion: tt.apiVersion, Kind: tt.kind}
			if got := d.Is(tt.group, "Pod"); got != tt.want {
				t.Errorf("%+v.Is(%q, Pod) = %t, want %t", d, tt.group, got, tt.want)
			}
		})
	}
}

// excerpt is what files have of a store: units, and errors instead of units.
func excerpt(found ...any) reaper.Excerpt {
	return reaper.Excerpt{Store: "whereabouts", Units: iter.Seq2[reaper.Unit, error](func(yield func(reaper.Unit, error) bool) {
		for _, f := range found {
			unit, _ := f.(reaper.Unit)
			err, _ := f.(error)
			if !yield(unit, err) {
				return
			}
		}
	})}
}

func TestExcerptCountsAUnitOnce(t *testing.T) {
	changed := webEntry()
	changed.Token = "t2"
	elsewhere := pool(changed)
	elsewhere.Name = "elsewhere"
	const twice = "pool: the files have it twice, and not the same; the first counts"
	for _, tt := range []struct {
		name  string
		units []any
		want  []string // tokens of the units, or errors
	}{
		{"the same unit", []any{pool(webEntry()), pool(webEntry())}, []string{"t1"}},
		{"the same unit, not the same any more", []any{pool(webEntry()), pool(changed)}, []string{"t1", twice}},
		{"two units", []any{pool(webEntry()), elsewhere}, []string{"t1", "t2"}},
		{"a unit that cannot be read, and again where it can", []any{&reaper.UnitError{Unit: "pool", Err: errors.New("cut")}, pool(webEntry())},
			[]string{"pool: cut", "t1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for unit, err := range excerpt(tt.units...).List(t.Context()) {
				var unreadable *reaper.UnitError
				if errors.As(err, &unreadable) {
					got = append(got, err.Error())
					continue
				}
				got = append(got, unit.Reservations[0].Token)
				unit.Reservations[0].Backend = "whereabouts" // as TakeInventory does
			}
			equal(t, "units", got, tt.want)
		})
	}
}

func TestExcerptReleasesNothing(t *testing.T) {
	errs := excerpt(pool(webEntry())).Release(t.Context(), "pool", make([]reaper.Warrant, 2))
	if len(errs) != 2 || !errors.Is(errs[0], reaper.ErrKept) || !errors.Is(errs[1], reaper.ErrKept) {
		t.Errorf("Release = %v, want ErrKept twice", errs)
	}
}
