package deploy_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "copy the admission policies of Kustomize into the chart")

// A chart cannot read files that are not in it. So it has copies of the policies, and
// changes only their names and accounts.
func TestChartHasTheAdmissionPoliciesOfKustomize(t *testing.T) {
	const component, chart = "components/admission", "helm/ip-reaper/admission"
	var want []string
	for _, file := range manifests(t, component) {
		base := filepath.Base(file)
		want = append(want, base)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(filepath.Join(chart, base), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(filepath.Join(chart, base))
		if err != nil {
			t.Fatalf("%v: run go test ./deploy -update", err)
		}
		if diff := cmp.Diff(string(text), string(got)); diff != "" {
			t.Errorf("%s: run go test ./deploy -update (-kustomize +chart):\n%s", base, diff)
		}
	}
	files, err := os.ReadDir(chart)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range files {
		got = append(got, file.Name())
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-kustomize +chart):\n%s", diff)
	}
}
