package ship_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// openShift is the API by which the chart knows OpenShift.
const openShift = "security.openshift.io/v1"

// convert returns an object as its type, which has all of its fields.
func convert[T any](t *testing.T, object unstructured.Unstructured) (typed T) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true); err != nil {
		t.Fatalf("%s: %v", object.GetName(), err)
	}
	return typed
}

// Left to the chart, the pods are made for OpenShift if the API server is OpenShift's.
// integration/ship proves what OpenShift admits, of the same objects.
func TestOpenShiftIsRecognised(t *testing.T) {
	on, off := "openshift: {enabled: true}\n"+everything, "openshift: {enabled: false}\n"+everything
	for _, tt := range []struct {
		name      string
		got, want map[string]unstructured.Unstructured
	}{
		{"elsewhere", theRelease.objects(t, everything), theRelease.objects(t, off)},
		{"on OpenShift", theRelease.objects(t, everything, openShift), theRelease.objects(t, on)},
		{"refused", theRelease.objects(t, off, openShift), theRelease.objects(t, off)},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// The network policy is for all pods of its release, and for no other. Its rules are
// narrowed to the addresses that are named.
func TestNetworkPolicyIsForItsReleaseAndCanBeNarrowed(t *testing.T) {
	const text = everything + etcdValues + metricsValues + `
networkPolicy:
  enabled: true
  apiServer: {ports: [16443], cidrs: [10.96.0.1/32, "2001:db8::/64"]}
  etcd: {ports: [2381], cidrs: [192.0.2.0/28]}
podLabels: {app.kubernetes.io/name: not-this}
`
	objects := theRelease.objects(t, text)
	policy := convert[networkingv1.NetworkPolicy](t, objects["NetworkPolicy ip-reaper/ip-reaper"])
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	must(t, err)
	for _, tt := range []struct {
		release string
		want    bool
	}{{chartName, true}, {"other", false}} {
		jobs := 0
		for _, object := range (target{tt.release, chartName}).objects(t, text) {
			if object.GetKind() != "CronJob" {
				continue
			}
			jobs++
			job := convert[batchv1.CronJob](t, object)
			if got := selector.Matches(labels.Set(job.Spec.JobTemplate.Spec.Template.Labels)); got != tt.want {
				t.Errorf("it is for the pods of %s: %v, want %v", job.Name, got, tt.want)
			}
		}
		if jobs != 5 {
			t.Errorf("%d CronJobs, want 5", jobs)
		}
	}

	type rule struct{ Ports, CIDRs []string }
	var got []rule
	for _, egress := range policy.Spec.Egress {
		var r rule
		for _, p := range egress.Ports {
			r.Ports = append(r.Ports, p.Port.String())
		}
		for _, to := range egress.To {
			r.CIDRs = append(r.CIDRs, to.IPBlock.CIDR)
		}
		slices.Sort(r.Ports)
		got = append(got, r)
	}
	want := []rule{
		{[]string{"16443"}, []string{"10.96.0.1/32", "2001:db8::/64"}},
		{[]string{"2381"}, []string{"192.0.2.0/28"}},
		{[]string{"9091"}, nil},
		{[]string{"53", "53", "5353", "5353"}, nil}, // DNS
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
