package deploy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// What a policy refuses is refused, and is in the audit log. So is what it cannot decide.
func TestAdmissionPoliciesRefuseAndTell(t *testing.T) {
	policies, bound := make(map[string]bool), make(map[string]bool)
	for _, object := range folders(t, "../helm/ip-reaper/admission") {
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
