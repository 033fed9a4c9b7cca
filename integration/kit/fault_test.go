package kit_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit/fault"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// serverVariable has the test binary be the client whose requests meet the faults.
const serverVariable = "FAULT_TEST_SERVER"

// writer reads once and writes three times, one after the other. It ends with an
// error when a request fails.
func writer(url string) int {
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, request := range []struct{ method, path, body string }{
		{http.MethodGet, "/api/v1/pods", ""},
		{http.MethodPost, "/api/v1/namespaces/a/configmaps", "one"},
		{http.MethodPatch, "/api/v1/namespaces/a/pods/b", "two"},
		{http.MethodDelete, "/api/v1/namespaces/a/pods/b", "three"},
	} {
		r, err := http.NewRequest(request.method, url+request.path, strings.NewReader(request.body))
		if err != nil {
			return reap.ExitUsage
		}
		res, err := c.Do(r)
		if err != nil || res.StatusCode != http.StatusOK {
			fmt.Fprintln(os.Stderr, request.path, err)
			return reap.ExitError
		}
	}
	return reap.ExitDone
}

// A writeServer remembers what was written.
type writeServer struct {
	proxy *proxy.Proxy
	start fault.Start

	mu      sync.Mutex
	written []string
}

func newWriteServer(t *testing.T) *writeServer {
	t.Helper()
	s := &writeServer{}
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil && r.Method != http.MethodGet {
			s.written = append(s.written, string(body))
		}
	}))
	t.Cleanup(upstream.Close)
	var err error
	s.proxy, err = proxy.Start(&rest.Config{Host: upstream.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.proxy.Stop)
	url := s.proxy.Config(&rest.Config{}).Host
	s.start = func() (*reap.Process, error) {
		path, err := os.Executable()
		if err != nil {
			return nil, err
		}
		r := &reap.Reaper{Path: path, Env: []string{serverVariable + "=" + url}}
		return r.Start(t.Context())
	}
	return s
}

func (s *writeServer) wrote() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.written)
}

// run runs the client to its end.
func (s *writeServer) run(t *testing.T, code int) {
	t.Helper()
	p, err := s.start()
	if err != nil {
		t.Fatal(err)
	}
	result, err := p.Wait()
	if err != nil || result.ExitCode != code {
		t.Fatalf("exit code %d, want %d: %v\n%s", result.ExitCode, code, err, result.Stderr)
	}
}

// Killed before its nth write, a process has made n-1 writes; killed after it, n.
func TestKillEndsAProcessAtEachPoint(t *testing.T) {
	s := newWriteServer(t)
	s.run(t, reap.ExitDone)
	writes := fault.Writes(s.proxy)
	if want := []string{"create configmaps", "patch pods b", "delete pods b"}; !slices.Equal(writes, want) {
		t.Fatalf("writes %q, want %q", writes, want)
	}
	points := fault.Points(writes)
	if len(points) != 6 {
		t.Fatalf("%d points, want 6", len(points))
	}
	for _, p := range points {
		t.Run(p.String(), func(t *testing.T) {
			s := newWriteServer(t)
			if err := fault.Kill(s.proxy, p, s.start); err != nil {
				t.Fatal(err)
			}
			want := []string{"one", "two", "three"}[:p.N-1]
			if p.After {
				want = []string{"one", "two", "three"}[:p.N]
			}
			if diff := cmp.Diff(want, s.wrote(), cmp.Transformer("some", func(all []string) string { return fmt.Sprint(all) })); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			s.run(t, reap.ExitDone) // nothing is in its way any more
		})
	}
}

// A test that kills nothing proves nothing: it is told so.
func TestKillSaysThatNothingWasKilled(t *testing.T) {
	s := newWriteServer(t)
	for name, err := range map[string]error{
		"a write that does not come":   fault.Kill(s.proxy, fault.Point{N: 4}, s.start),
		"a request that does not come": fault.KillAt(s.proxy, proxy.On("update pods"), true, s.start),
	} {
		if err == nil || !strings.Contains(err.Error(), "was not killed: it ended with exit code 0 after 3 writes") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := fault.Hold(s.proxy, proxy.On("update pods"), s.start); err == nil ||
		!strings.Contains(err.Error(), "exit code 0 before the request") {
		t.Errorf("held at a request that does not come: %v", err)
	}
}

func TestPointsAreThoseThatDiffer(t *testing.T) {
	points := fault.Points([]string{"create leases a", "patch ippools b", "create events c", "create events c", "create events c"})
	var names []string
	for _, p := range points {
		names = append(names, p.String())
	}
	want := []string{
		"before 1 create leases a", "after 1 create leases a", "before 2 patch ippools b", "after 2 patch ippools b",
		"before 3 create events c", "after 3 create events c", "before 5 create events c", "after 5 create events c",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	if got := fmt.Sprint(fault.Changing(points)); got != "[after 2 patch ippools b]" {
		t.Errorf("points that change a store: %s", got)
	}
}

// A write whose answer is lost is done; one that fails is not.
func TestFaultsAreBeforeOrAfterTheWrite(t *testing.T) {
	for _, f := range fault.Faults {
		t.Run(f.Name, func(t *testing.T) {
			s := newWriteServer(t)
			f.Fail(s.proxy, proxy.On("patch pods"))
			s.run(t, reap.ExitError)
			s.proxy.Reset()
			f.Lose(s.proxy, proxy.On("patch pods"))
			s.run(t, reap.ExitError)
			if got := s.wrote(); !slices.Equal(got, []string{"one", "one", "two"}) {
				t.Errorf("written %q", got)
			}
		})
	}
}
