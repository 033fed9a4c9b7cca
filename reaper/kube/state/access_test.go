package state

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

func TestMissingRights(t *testing.T) {
	needs := []Need{
		{Verb: "get", Resource: "pods"},
		{Verb: "patch", Group: "a.example.com", Resource: "pools"},
		{Verb: "create", Resource: "configmaps", Namespace: "reap"},
		{Verb: "get", Resource: "configmaps", Namespace: "reap", Name: "ledger"},
	}
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter, a *authorizationv1.ResourceAttributes)
		want   []string
		fails  bool
	}{
		{"none", reviewed(func(*authorizationv1.ResourceAttributes) bool { return true }), nil, false},
		{"all", reviewed(func(*authorizationv1.ResourceAttributes) bool { return false }),
			[]string{"get pods", "patch pools.a.example.com", "create configmaps in namespace reap", "get configmaps ledger in namespace reap"}, false},
		{"one", reviewed(func(a *authorizationv1.ResourceAttributes) bool { return a.Verb != "patch" }), []string{"patch pools.a.example.com"}, false},
		{"the review is forbidden", func(w http.ResponseWriter, _ *authorizationv1.ResourceAttributes) {
			w.WriteHeader(http.StatusForbidden)
		}, nil, true},
		{"another answer", func(w http.ResponseWriter, _ *authorizationv1.ResourceAttributes) { _, _ = w.Write([]byte(`{}`)) }, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				data, _ := io.ReadAll(r.Body)
				var review authorizationv1.SelfSubjectAccessReview
				if err := json.Unmarshal(data, &review); err != nil || r.URL.Path != "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
					t.Errorf("%s %s: %v", r.URL.Path, data, err)
				}
				w.Header().Set("Content-Type", "application/json")
				tt.answer(w, review.Spec.ResourceAttributes)
			}))
			defer server.Close()
			raw, err := kube.RawClient(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			missing, err := Missing(t.Context(), raw, needs)
			var got []string
			for _, need := range missing {
				got = append(got, need.String())
			}
			if !slices.Equal(got, tt.want) || (err != nil) != tt.fails {
				t.Errorf("missing %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// reviewed answers a review with what is allowed.
func reviewed(allowed func(*authorizationv1.ResourceAttributes) bool) func(http.ResponseWriter, *authorizationv1.ResourceAttributes) {
	return func(w http.ResponseWriter, a *authorizationv1.ResourceAttributes) {
		answer := authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: allowed(a)}}
		answer.Kind = "SelfSubjectAccessReview"
		_ = json.NewEncoder(w).Encode(answer)
	}
}
