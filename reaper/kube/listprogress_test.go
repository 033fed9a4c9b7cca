package kube

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLongListsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		p := NewListProgress(time.Now, func(line string) { told = append(told, line) })
		transport := p.Wrap(answering(func() (*http.Response, error) {
			time.Sleep(500 * time.Millisecond)
			return &http.Response{}, nil
		}))
		for _, path := range []string{
			"/api/v1/nodes?limit=500", "/api/v1/namespaces/a/pods/b", "/api/v1/pods?limit=500",
			"/api/v1/pods?limit=500&continue=a", "/api/v1/pods?limit=500&continue=b", "/api/v1/pods?limit=500&continue=c",
			"/api/v1/pods?limit=500&continue=d", "/api/v1/pods?limit=500&continue=e", "/api/v1/pods?limit=500", // again
			"/api/v1/pods?limit=500&continue=a",
		} {
			if _, err := get(t.Context(), t, transport, path); err != nil { //nolint:bodyclose // it has none
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{"list pods: 4 pages, 2.0/s, 2s elapsed"}, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}
