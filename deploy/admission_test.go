package deploy_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
)

var update = flag.Bool("update", false, "copy the admission policies of Kustomize into the chart")

// A chart cannot read files that are not in it. So it has copies of the policies, and
// changes only their names and accounts.
func TestChartHasTheAdmissionPoliciesOfKustomize(t *testing.T) {
	const chart = "helm/ip-reaper/admission"
	copies := map[string]string{"restore.yaml": filepath.Join("kustomize", "components", "restore", "admission.yaml")}
	for _, file := range manifests(t, "components/admission") {
		copies[filepath.Base(file)] = file
	}
	for base, file := range copies {
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
	if diff := cmp.Diff(slices.Sorted(maps.Keys(copies)), got); diff != "" {
		t.Errorf("files (-kustomize +chart):\n%s", diff)
	}
}

// What a policy refuses is refused, and is in the audit log. So is what it cannot decide.
func TestAdmissionPoliciesRefuseAndTell(t *testing.T) {
	policies, bound := make(map[string]bool), make(map[string]bool)
	for _, object := range folders(t, "components/admission", "components/restore") {
		switch o := object.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			policies[o.Name] = true
			if *o.Spec.FailurePolicy != admissionv1.Fail {
				t.Errorf("the failurePolicy of %s is %s", o.Name, *o.Spec.FailurePolicy)
			}
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			bound[o.Spec.PolicyName] = true
			want := []admissionv1.ValidationAction{admissionv1.Deny, admissionv1.Audit}
			if diff := cmp.Diff(want, o.Spec.ValidationActions); diff != "" {
				t.Errorf("actions of %s (-want +got):\n%s", o.Name, diff)
			}
		}
	}
	if diff := cmp.Diff(policies, bound); diff != "" {
		t.Errorf("policies with a binding (-want +got):\n%s", diff)
	}
	if len(policies) == 0 {
		t.Error("there are no policies")
	}
}
