package proxy

import (
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequestsAreNamedAsInRoles(t *testing.T) {
	for _, tt := range []struct {
		method, url string
		want        string
		mutating    bool
	}{
		{"GET", "/api/v1/pods?limit=500", "list pods", false},
		{"GET", "/api/v1/namespaces/shop/pods/web-0", "get pods", false},
		{"GET", "/api/v1/namespaces/shop/pods?watch=true", "watch pods", false},
		{"PATCH", "/api/v1/namespaces/shop/pods/web-0/status", "patch pods/status", true},
		{"POST", "/api/v1/namespaces/shop/serviceaccounts/x/token", "create serviceaccounts/token", true},
		{"DELETE", "/api/v1/namespaces/shop/pods", "deletecollection pods", true},
		{"GET", "/api/v1/namespaces/shop", "get namespaces", false},
		{"GET", "/api/v1/namespaces", "list namespaces", false},
		{"PUT", "/api/v1/namespaces/shop/finalize", "update namespaces/finalize", true},
		{"PATCH", "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/ippools/10.0.0.0-8", "patch ippools", true},
		{"PATCH", "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/ippools/10.0.0.0-8?dryRun=All", "patch ippools", false},
		{"DELETE", "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/overlappingrangeipreservations/10.0.0.1", "delete overlappingrangeipreservations", true},
		{"GET", "/apis/coordination.k8s.io/v1", "GET /apis/coordination.k8s.io/v1", false},
		{"GET", "/api", "GET /api", false},
		{"GET", "/readyz", "GET /readyz", false},
		{"GET", "/", "GET /", false},
	} {
		t.Run(tt.method+" "+tt.url, func(t *testing.T) {
			r := parse(httptest.NewRequest(tt.method, tt.url, nil))
			if r.String() != tt.want || r.Mutating() != tt.mutating {
				t.Errorf("%q, mutating %t, want %q, %t", r, r.Mutating(), tt.want, tt.mutating)
			}
		})
	}
}

func TestRequestNamesWhatItIsFor(t *testing.T) {
	h := httptest.NewRequest("PATCH", "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/ippools/blue?fieldManager=x", nil)
	h.Header.Set("User-Agent", "ip-reaper/test")
	want := Request{
		Verb: "patch", Group: "whereabouts.cni.cncf.io", Version: "v1alpha1", Resource: "ippools",
		Namespace: "kube-system", Name: "blue", UserAgent: "ip-reaper/test",
		Path:  "/apis/whereabouts.cni.cncf.io/v1alpha1/namespaces/kube-system/ippools/blue",
		Query: "fieldManager=x",
	}
	if diff := cmp.Diff(want, parse(h)); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}
