package deploy_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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

// A policy is for exactly the accounts that have rights, and one of them for the people who release, too. Of
// a request of anyone else, an API server evaluates nothing but this one condition.
func TestAdmissionPoliciesAreForTheAccountsWithRights(t *testing.T) {
	accounts := make(map[string]bool)
	for _, object := range folders(t, "base", "components/restore", "job/account") {
		var subjects []rbacv1.Subject
		switch o := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			subjects = o.Subjects
		case *rbacv1.RoleBinding:
			subjects = o.Subjects
		}
		for _, s := range subjects {
			user := s.Name
			if s.Kind == rbacv1.ServiceAccountKind {
				user = "system:serviceaccount:" + s.Namespace + ":" + s.Name
			}
			accounts["'"+user+"'"] = true
		}
	}
	named := regexp.MustCompile(`'system:[^']+'`)
	for policy, people := range map[string]string{
		"ip-reaper-other":  "",
		"ip-reaper-writes": " || 'ip-reaper-operators' in request.userInfo.?groups.orValue([])",
	} {
		o := find[*admissionv1.ValidatingAdmissionPolicy](t, folders(t, "../helm/ip-reaper/admission"), policy)
		if len(o.Spec.MatchConditions) != 1 {
			t.Fatalf("%s has %d conditions, want one", policy, len(o.Spec.MatchConditions))
		}
		expression, got := o.Spec.MatchConditions[0].Expression, make(map[string]bool)
		for _, user := range named.FindAllString(expression, -1) {
			got[user] = true
		}
		if diff := cmp.Diff(accounts, got); diff != "" {
			t.Errorf("accounts of %s (-with rights +named):\n%s", policy, diff)
		}
		want := "request.userInfo.username in [ NAME, NAME, NAME ]" + people
		if diff := cmp.Diff(want, named.ReplaceAllString(expression, "NAME")); diff != "" {
			t.Errorf("condition of %s (-want +got):\n%s", policy, diff)
		}
	}
}
