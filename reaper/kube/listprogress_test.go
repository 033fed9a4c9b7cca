package kube

import (
	"io"
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

// An answer with a whole list has no pages, and its bytes are told.
func TestWholeListIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		p := NewListProgress(time.Now, func(line string) { told = append(told, line) })
		transport := p.Wrap(answering(func() (*http.Response, error) {
			return &http.Response{Body: io.NopCloser(&slowReader{mib: 10})}, nil
		}))
		for _, path := range []string{"/api/v1/pods", "/api/v1/configmaps?fieldSelector=metadata.name%3Da", "/api/v1/namespaces/a/pods/b"} {
			response, err := get(t.Context(), t, transport, path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, response.Body); err != nil {
				t.Error(err)
			}
			_ = response.Body.Close()
		}
		if diff := cmp.Diff([]string{"list pods: 3 MiB, 1.5 MiB/s, 2s elapsed", "list pods: 7 MiB, 1.8 MiB/s, 4s elapsed"}, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
}

// A slowReader yields a MiB each half second.
type slowReader struct{ mib, read int }

func (r *slowReader) Read(p []byte) (int, error) {
	if r.read == r.mib<<20 {
		return 0, io.EOF
	}
	if r.read%(1<<20) == 0 {
		time.Sleep(500 * time.Millisecond)
	}
	n := min(len(p), 1<<20-r.read%(1<<20))
	r.read += n
	return n, nil
}
