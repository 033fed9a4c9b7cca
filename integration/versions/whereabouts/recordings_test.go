package whereabouts_test

import (
	"slices"
	"testing"
)

// live and gone are what each recorded version stored for a/live and a/gone.
func live() []string {
	return slices.Concat(both("10.1.0.0-24", "10.1.0.1", "10.1.0.1"), both("blue-10.2.0.0-24", "10.2.0.1", "blue-10.2.0.1"),
		both("fd00-1---64", "fd00:1::1", "fd00-1--1"))
}

func gone() []string {
	return slices.Concat(both("10.1.0.0-24", "10.1.0.2", "10.1.0.2"), both("blue-2-10.2.0.0-24", "10.2.0.1", "blue-2-10.2.0.1"),
		both("fd00-1---64", "fd00:1::2", "fd00-1--2"))
}

// again is what a version stored for a/again, which came back under its name.
var again = map[string][]string{
	"0.7.0": slices.Concat(both("10.1.0.0-24", "10.1.0.3", "10.1.0.3"), both("10.1.0.0-24", "10.1.0.4", "10.1.0.4")),
	"0.8.1": both("10.1.0.0-24", "10.1.0.3", "10.1.0.3"),
	"0.9.4": both("10.1.0.0-24", "10.1.0.3", "10.1.0.3"),
}

// Of what each version stored, exactly what the pod that is gone left behind goes. Later, the
// pod that came back is gone too. Then all goes that it left, the entry and the reservation
// included that version 0.7.0 leaked when it came back.
func TestRecordingsOfOtherVersions(t *testing.T) {
	for version, again := range again {
		t.Run(version, func(t *testing.T) {
			f := newFixture(t)
			f.loadRecording(version)
			f.play("", verdicts{kept: slices.Concat(live(), again), released: gone()})
			f.must(f.DeletePod(f.Context(), "a", "again"))
			f.play("", verdicts{kept: live(), released: again})
		})
	}
}
