package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/metrics"
)

// Nodes that push to one gateway do not replace each other's metrics.
func TestGroupComesFromThePathAndTheNode(t *testing.T) {
	for _, tt := range []struct {
		path string
		node string
		want string // the path of the push; the group of the success is below it
	}{
		{"", "", "/metrics/job/ip-reaper"},
		{"/", "", "/metrics/job/ip-reaper"},
		{"/team/gateway/", "", "/team/gateway/metrics/job/ip-reaper"},
		{"/metrics/job/reaper", "", "/metrics/job/reaper"},
		{"/metrics/job/ip-reaper/cluster/prod/", "", "/metrics/job/ip-reaper/cluster/prod"},
		{"/team/metrics/job/a%20b/cluster/c%2Fd", "", "/team/metrics/job/a+b/cluster@base64/Yy9k"},
		{"", "node-a", "/metrics/job/ip-reaper/node/node-a"},
		{"/metrics/job/ip-reaper/node/other", "node-a", "/metrics/job/ip-reaper/node/other"},
	} {
		t.Run(tt.path+" "+tt.node, func(t *testing.T) {
			r := everything()
			r.Run.Node = tt.node
			c := push(t, tt.path, r, 0)
			var got []string
			for line := range strings.Lines(c.pushed.String()) {
				if method, path, _ := strings.Cut(strings.TrimSpace(line), " "); method == http.MethodPut || method == http.MethodPost {
					got = append(got, path)
				}
			}
			// The client does not order labels.
			if len(got) != 2 || got[0] != tt.want || strings.Replace(got[1], "/outcome/success", "", 1) != tt.want || got[1] == tt.want {
				t.Errorf("pushed to %q, want %q, and the success beside it", got, tt.want)
			}
		})
	}
}

// An error does not quote the URL: a part of it may be a password.
func TestURLsThatAreNoGateways(t *testing.T) {
	for _, tt := range []struct{ url, want string }{
		{"pushgateway:9091", "the URL does not begin with http:// or https:// and a host"},
		{"http://", "the URL does not begin with http:// or https:// and a host"},
		{"http://me:s3cret%zz@pushgateway", "this is not a URL"},
		{"http://me:s3cret@pushgateway:9091", "the URL has a user, and http would send the password in the clear: use https://"},
		{"http://@pushgateway/metrics", "the URL has a user, and http would send the password in the clear: use https://"},
		{"http://me:s3cret@pushgateway:s3cret", "this is not a URL"},
		{"http://pushgateway?token=s3cret", "the URL has a ? or a # after its path: leave that out"},
		{"http://pushgateway#s3cret", "the URL has a ? or a # after its path: leave that out"},
		{"http://pushgateway/metrics", "the path of the URL ends within /metrics/job/NAME: leave out /metrics, or name the job"},
		{"http://pushgateway/metrics/job/", "the path of the URL ends within /metrics/job/NAME: leave out /metrics, or name the job"},
		{"http://pushgateway/metrics/job/a/cluster", "the path of the URL has a label without a value: write /metrics/job/NAME/LABEL/VALUE"},
		{"http://pushgateway/metrics/job//cluster/prod", "the path of the URL has an empty part, or a wrong escape sequence"},
		{"http://pushgateway/metrics/job/a/cluster@base64/cHJvZA", `the path of the URL has "cluster@base64", which is not a valid label name`},
		{"http://pushgateway/metrics/job/a/backend/b", `the path of the URL has the label "backend", which the metrics have already: choose another name`},
		{"http://pushgateway/metrics/job/a/outcome/b", `the path of the URL has the label "outcome", which the metrics have already: choose another name`},
		{"http://pushgateway/metrics/job/a/cluster/b/cluster/c", `the path of the URL has the label "cluster", which the metrics have already: choose another name`},
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

// A Pushgateway refuses a push whose metrics have a label of the group. A group may have the label
// node, on a node and elsewhere.
func TestNoFigureHasALabelOfAGroup(t *testing.T) {
	onNode := everything()
	onNode.Run.Node = "node-a"
	for _, c := range []*fakeGateway{push(t, "", everything(), 0), push(t, "/metrics/job/b/node/c", everything(), 0), push(t, "", onNode, 0)} {
		grouped := strings.Contains(c.pushed.String(), "/node/")
		if len(c.families) == 0 {
			t.Error("nothing was pushed")
		}
		for _, family := range c.families {
			for _, metric := range family.GetMetric() {
				for _, l := range metric.GetLabel() {
					_, err := metrics.ParseGateway("http://a/metrics/job/b/" + l.GetName() + "/c")
					if err == nil && (l.GetName() != "node" || grouped) {
						t.Errorf("a group may have the label %s, which %s has", l.GetName(), family.GetName())
					}
				}
			}
		}
	}
}

// startTLS starts a server with TLS, which the clients of this test trust.
func startTLS(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	was := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = was })
	http.DefaultTransport = server.Client().Transport
	return server
}

// withUser puts a user and a password into a URL.
func withUser(url string) string { return strings.Replace(url, "://", "://me:s3cret%2F@", 1) }

func TestCredentialsAreSentAndNotTold(t *testing.T) {
	c := &fakeGateway{T: t}
	server := startTLS(t, c)
	gateway, err := metrics.ParseGateway(withUser(server.URL))
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

// A login page is not the gateway, and no other server gets the credentials.
func TestRedirectionIsNotFollowed(t *testing.T) {
	var elsewhere []string
	other := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
	})
	inClear := httptest.NewServer(other)
	defer inClear.Close()
	encrypted := startTLS(t, other)
	for _, code := range []int{http.StatusFound, http.StatusTemporaryRedirect} { // as a GET, and as it is
		for _, to := range []string{"/login", inClear.URL, withUser(encrypted.URL)} {
			asked := 0
			server := startTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked++; r.URL.Path != "/login" {
					http.Redirect(w, r, to, code)
				}
			}))
			gateway, err := metrics.ParseGateway(withUser(server.URL))
			if err != nil {
				t.Fatal(err)
			}
			if err := gateway.Push(t.Context(), everything(), 0); err == nil || asked != 1 || !strings.Contains(err.Error(), strconv.Itoa(code)) {
				t.Errorf("after %d requests, a redirection by %d to %s is %v, want an error after one", asked, code, to, err)
			}
		}
	}
	if len(elsewhere) > 0 {
		t.Errorf("other servers were asked for %q", elsewhere)
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
