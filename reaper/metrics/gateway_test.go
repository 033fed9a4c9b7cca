package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/metrics"
)

func TestGroupComesFromThePath(t *testing.T) {
	for _, tt := range []struct {
		path string
		want string // that figures are pushed to; with the success in a group below it
	}{
		{"", "/metrics/job/ip-reaper"},
		{"/", "/metrics/job/ip-reaper"},
		{"/team/gateway/", "/team/gateway/metrics/job/ip-reaper"},
		{"/metrics/job/reaper", "/metrics/job/reaper"},
		{"/metrics/job/ip-reaper/cluster/prod/", "/metrics/job/ip-reaper/cluster/prod"},
		{"/team/metrics/job/a%20b/cluster/c%2Fd", "/team/metrics/job/a+b/cluster@base64/Yy9k"},
	} {
		t.Run(tt.path, func(t *testing.T) {
			c := push(t, tt.path, everything(), 0)
			var got []string
			for line := range strings.Lines(c.handedIn.String()) {
				if method, path, _ := strings.Cut(strings.TrimSpace(line), " "); method == http.MethodPut || method == http.MethodPost {
					got = append(got, path)
				}
			}
			// The client has no order of labels.
			if len(got) != 2 || got[0] != tt.want || strings.Replace(got[1], "/outcome/success", "", 1) != tt.want || got[1] == tt.want {
				t.Errorf("pushed to %q, want %q, and the success beside it", got, tt.want)
			}
		})
	}
}

// What is wrong is said without the URL: a part of it may be a password.
func TestURLsThatAreNoGateways(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"pushgateway:9091", "it does not begin with http:// or https://"},
		{"pushgateway", "it does not begin with http:// or https://"},
		{"ftp://pushgateway", "it does not begin with http:// or https://"},
		{"//pushgateway:9091", "it does not begin with http:// or https://"},
		{"http://", "it names no host"},
		{"http://:9091", "it names no host"},
		{"http:pushgateway", "it names no host"},
		{"http://me:s3cret%zz@pushgateway", "it is no URL"},
		{"http://me:s3cret@pushgateway:s3cret", "it is no URL"},
		{"http://pushgateway\n", "it is no URL"},
		{"http://pushgateway?token=s3cret", "nothing may follow the path: no ? and no #"},
		{"http://pushgateway?", "nothing may follow the path: no ? and no #"},
		{"http://pushgateway#s3cret", "nothing may follow the path: no ? and no #"},
		{"http://pushgateway/metrics", "its path ends within /metrics/job/NAME: leave that out, or name the job"},
		{"http://pushgateway/metrics/job/", "its path ends within /metrics/job/NAME: leave that out, or name the job"},
		{"http://pushgateway/metrics/job/a/cluster", "its path has a label without a value: it goes on as /metrics/job/NAME/LABEL/VALUE"},
		{"http://pushgateway/metrics/job//cluster/prod", "its path has an empty part, or one that is escaped wrongly"},
		{"http://pushgateway/metrics/job/a/cluster//b/c", "its path has an empty part, or one that is escaped wrongly"},
		{"http://pushgateway/metrics/job/a/cluster@base64/cHJvZA", `"cluster@base64" in its path is no name of a label`},
		{"http://pushgateway/metrics/job/a/__name__/b", `"__name__" in its path is no name of a label`},
		{"http://pushgateway/metrics/job/a/backend/b", `the label "backend" in its path is there already`},
		{"http://pushgateway/metrics/job/a/job/b", `the label "job" in its path is there already`},
		{"http://pushgateway/metrics/job/a/outcome/b", `the label "outcome" in its path is there already`},
		{"http://pushgateway/metrics/job/a/cluster/b/cluster/c", `the label "cluster" in its path is there already`},
	} {
		gateway, err := metrics.ParseGateway(tt.url)
		if err == nil {
			t.Errorf("%s is a gateway: %v", tt.url, gateway)
			continue
		}
		if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.url, diff)
		}
	}
}

// Who groups by a label that a figure has could never push.
func TestNoFigureHasALabelOfAGroup(t *testing.T) {
	c := push(t, "", everything(), 0)
	for _, family := range c.families {
		for _, metric := range family.GetMetric() {
			for _, l := range metric.GetLabel() {
				if _, err := metrics.ParseGateway("http://a/metrics/job/b/" + l.GetName() + "/c"); err == nil {
					t.Errorf("a group may have the label %s, which %s has", l.GetName(), family.GetName())
				}
			}
		}
	}
}

func TestCredentialsAreSentAndNotTold(t *testing.T) {
	c := &counter{T: t}
	server := httptest.NewServer(c)
	url := strings.Replace(server.URL, "http://", "http://me:s3cret%2F@", 1)
	gateway, err := metrics.ParseGateway(url)
	if err != nil {
		t.Fatal(err)
	}
	if err := gateway.Push(t.Context(), everything(), 3); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"me s3cret/"}, c.users); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
	server.Close()
	err = gateway.Push(t.Context(), everything(), 3)
	if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "me:") {
		t.Errorf("push to a gateway that is gone: %v, want an error without credentials", err)
	}
}

// A page of a login is not the gateway.
func TestRedirectionIsNoSuccess(t *testing.T) {
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked++; r.URL.Path != "/login" {
				http.Redirect(w, r, "/login", code)
			}
		}))
		gateway, err := metrics.ParseGateway(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := gateway.Push(t.Context(), everything(), 0); err == nil || asked != 1 {
			t.Errorf("after %d requests, a redirection by %d is %v, want an error after one", asked, code, err)
		}
		server.Close()
	}
}

// What a gateway answers goes into a line of the log.
func TestLongAnswersAreCut(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte(strings.Repeat("x", 1<<20)))
	}))
	defer server.Close()
	gateway, err := metrics.ParseGateway(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	err = gateway.Push(t.Context(), everything(), 0)
	if err == nil || !strings.Contains(err.Error(), "502") || len(err.Error()) > 2000 {
		t.Errorf("a long answer is an error of %d bytes, want a short one with its code", len(err.Error()))
	}
}
