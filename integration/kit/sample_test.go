package kit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSampleHasTheEndsAndTheMiddle(t *testing.T) {
	for _, tt := range []struct {
		name      string
		all, want []int
	}{
		{"none", nil, nil},
		{"as many as a sample has", []int{1, 2, 3}, []int{1, 2, 3}},
		{"one more", []int{1, 2, 3, 4}, []int{1, 3, 4}},
		{"many", []int{1, 2, 3, 4, 5, 6, 7}, []int{1, 4, 7}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, thinned(tt.all)); diff != "" {
				t.Errorf("sample (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSampleByHasTheFirstOfEachKind(t *testing.T) {
	got := firsts([]string{"get pods", "list pods", "get nodes", "list nodes", "patch pods"}, func(s string) string {
		return s[:3]
	})
	if diff := cmp.Diff([]string{"get pods", "list pods", "patch pods"}, got); diff != "" {
		t.Errorf("sample (-want +got):\n%s", diff)
	}
}

func TestSampleIsEverythingUnlessTestsAreShort(t *testing.T) {
	all := []int{1, 2, 3, 4, 5}
	want := all
	if testing.Short() {
		want = []int{1, 3, 5}
	}
	if diff := cmp.Diff(want, Sample(all)); diff != "" {
		t.Errorf("sample (-want +got):\n%s", diff)
	}
	if testing.Short() {
		want = []int{1, 2}
	}
	if diff := cmp.Diff(want, SampleBy(all, func(i int) bool { return i%2 == 0 })); diff != "" {
		t.Errorf("sample of kinds (-want +got):\n%s", diff)
	}
}
