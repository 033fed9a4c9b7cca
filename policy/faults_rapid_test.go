package policy

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"
)

// A question to faults has the answer that a look at each mistake gives.
func TestFaultsAreThoseAtBelowAndAboveAField(t *testing.T) {
	paths := rapid.Custom(func(t *rapid.T) *field.Path {
		at := field.NewPath(rapid.SampledFrom([]string{"a", "ab", "a-", "b"}).Draw(t, "root"))
		for range rapid.IntRange(0, 3).Draw(t, "depth") {
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				at = at.Child(rapid.SampledFrom([]string{"a", "ab", "a.b", ""}).Draw(t, "child"))
			case 1:
				at = at.Index(rapid.SampledFrom([]int{0, 1, 10}).Draw(t, "index"))
			default:
				at = at.Key(rapid.SampledFrom([]string{"a", "a]b", "[0]"}).Draw(t, "key"))
			}
		}
		return at
	})
	rapid.Check(t, func(t *rapid.T) {
		var found field.ErrorList
		for _, at := range rapid.SliceOfN(paths, 0, 8).Draw(t, "mistakes") {
			found = append(found, field.Required(at, ""))
		}
		asked := paths.Draw(t, "asked")
		want := slices.ContainsFunc(found, func(err *field.Error) bool {
			return within(err.Field, asked.String()) || within(asked.String(), err.Field)
		})
		if got := newFaults(found).at(asked); got != want {
			t.Errorf("at %s: %t, want %t", asked, got, want)
		}
	})
}
