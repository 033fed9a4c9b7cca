package azurecns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/azurecns/cnstest"
	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A leak is a fake CNS with the two addresses of a container that is gone.
type leak struct {
	*testing.T
	cns  *cnstest.CNS
	node *node
	pair []ipam.Allocation
	pods backendtest.Pods

	releases atomic.Int32 // requests that CNS got
	server   *httptest.Server
}

// newLeak returns a leak. Each request passes through the handler.
func newLeak(t *testing.T, through func(next http.Handler) http.Handler) *leak {
	t.Helper()
	l := &leak{T: t, cns: cnstest.NewManaging()}
	l.server = httptest.NewServer(through(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == pathRelease {
			l.releases.Add(1)
		}
		l.cns.ServeHTTP(w, r)
	})))
	t.Cleanup(l.server.Close)
	fill(l.cns)
	l.node = newNode(t, l.server.URL, true)
	owner := ipam.Owner{Pod: ipam.PodRef{Namespace: "shop", Name: "web-0"}, Sandbox: deadID}
	for _, pool := range []string{"a", "b"} {
		a, err := l.node.Reserve(pool, owner)
		if err != nil {
			t.Fatal(err)
		}
		l.pair = append(l.pair, a)
	}
	l.releases.Store(0)
	return l
}

// warrants returns warrants for both addresses.
func (l *leak) warrants() []ipam.Warrant {
	l.Helper()
	return backendtest.Warrants(l, l.node.Backend(), backendtest.OnNode(&l.pods), l.pair...)
}

// straight passes every request on.
func straight(next http.Handler) http.Handler { return next }

// wantAll fails the test unless every answer wraps the error and has the text. Without both,
// every answer must be nil.
func (l *leak) wantAll(errs []error, want error, text string) {
	l.Helper()
	if len(errs) == 0 {
		l.Error("there is no answer")
	}
	for i, err := range errs {
		success := want == nil && text == ""
		if success != (err == nil) || want != nil && !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), text) {
			l.Errorf("answer %d is %v, want %v with %q", i+1, err, want, text)
		}
	}
}

// wantLeft fails the test unless CNS still has n addresses assigned.
func (l *leak) wantLeft(n int) {
	l.Helper()
	if left, err := l.node.Snapshot(); len(left) != n || err != nil {
		l.Errorf("left are %d, want %d: %v, %v", len(left), n, left, err)
	}
}

// Promise 1. CNS frees all addresses of a container on one request.
func TestOneRequestReleasesAContainer(t *testing.T) {
	l := newLeak(t, straight)
	l.wantAll(l.node.Backend().Release(t.Context(), l.warrants()), nil, "")
	l.wantLeft(0)
	if got := l.releases.Load(); got != 1 {
		t.Errorf("CNS got %d requests, want 1", got)
	}
}

// Promise 1, 4. Nothing is released if the container has an address without a warrant.
func TestSiblingWithoutWarrantKeepsTheContainer(t *testing.T) {
	l := newLeak(t, straight)
	ws := l.warrants()
	l.wantAll(l.node.Backend().Release(t.Context(), ws[:1]), ipam.ErrKept, "also free "+l.pair[1].Key)
	l.wantAll(l.node.Backend().Release(t.Context(), []ipam.Warrant{{}, ws[1]})[1:], ipam.ErrKept, "also free "+l.pair[0].Key)
	l.wantLeft(2)
	if got := l.releases.Load(); got != 0 {
		t.Errorf("CNS got %d requests, want none", got)
	}
}

// Promise 4. The backend compares what CNS has right before the request, because CNS compares
// nothing.
func TestWhatChangedSinceTheListingStays(t *testing.T) {
	for name, change := range map[string]func(l *leak){
		"a restart of CNS": func(l *leak) { l.cns.Restart() },
		"another pod": func(l *leak) {
			l.cns.Change(deadID, func(a *cnstest.Address) { o := *a.Owner; o.Pod = "web-1"; a.Owner = &o })
		},
		"the state of both":     func(l *leak) { l.cns.Change(deadID, func(a *cnstest.Address) { a.State = cnstest.PendingRelease }) },
		"what is freed with it": func(l *leak) { l.cns.Link(deadID, l.pair[0].Key, l.pair[1].Key, "10.241.0.9") },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeak(t, straight)
			ws := l.warrants()
			change(l)
			l.wantAll(l.node.Backend().Release(t.Context(), ws), ipam.ErrChanged, "")
			l.wantLeft(2)
			if got := l.releases.Load(); got != 0 {
				t.Errorf("CNS got %d requests, want none", got)
			}
		})
	}
}

// Promise 2. An address that CNS has twice is not known to be free, whatever its state.
func TestAddressThatCannotBeReadIsNotFree(t *testing.T) {
	ip := netip.MustParseAddr("10.241.0.9")
	free := func(id string) json.RawMessage {
		return json.RawMessage(`{"ID":"` + id + `","IPAddress":"10.241.0.9","state":"Available"}`)
	}
	r := release{allocations: []ipam.Allocation{{IP: ip}}, errs: make([]error, 1)}
	r.unchanged(newState(nil, map[string]json.RawMessage{"a": free("a"), "b": free("b")}))
	if err := r.errs[0]; !errors.Is(err, ipam.ErrChanged) {
		t.Errorf("the answer is %v, want ErrChanged", err)
	}
}

// Promise 7. CNS answers 200 to a request that failed, and success to one that did nothing. Of
// two JSON objects, the first counts. An answer without a code is not from CNS.
func TestAnswersOfCNSAreNotBelieved(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer cnstest.Answer
		is     error
		want   string
	}{
		{"a nested failure", cnstest.Answer{Status: 200, Body: `{"podIPInfo":null,"response":{"ReturnCode":99,"Message":"the store is locked"}}`}, nil, "CNS answered 99: the store is locked"},
		{"written twice", cnstest.Answer{Status: 200, Body: `{"response":{"ReturnCode":99,"Message":"first"}}` + "\n" + `{"response":{"ReturnCode":0}}`}, nil, "first"},
		{"success for nothing", cnstest.Answer{Status: 200, Body: `{"podIPInfo":null,"response":{"ReturnCode":0,"Message":""}}`}, nil, "CNS reported success, but still has it"},
		{"no code", cnstest.Answer{Status: 200, Body: `{"response":{}}`}, nil, "no ReturnCode"},
		{"another spelling", cnstest.Answer{Status: 200, Body: `{"Response":{"ReturnCode":0}}`}, nil, "no ReturnCode"},
		{"a list", cnstest.Answer{Status: 200, Body: `[]`}, nil, "cannot unmarshal"},
		{"half an answer", cnstest.Answer{Status: 200, Body: `{"response":{"ReturnCode":0`}, ipam.ErrAgain, "the answer is incomplete"},
		{"a server's error", cnstest.Answer{Status: 503, Body: `{"response":{"ReturnCode":0}}`}, ipam.ErrAgain, "503"},
		{"a path that is not there", cnstest.Answer{Status: 404, Body: `{"response":{"ReturnCode":0}}`}, nil, "404"},
		{"another place", cnstest.Answer{Status: 302, Body: ``}, nil, "302"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLeak(t, straight)
			ws := l.warrants()
			l.cns.OnRequest(func(_, path string) *cnstest.Answer {
				if path == pathRelease {
					return &tt.answer
				}
				return nil
			})
			errs := l.node.Backend().Release(t.Context(), ws)
			l.wantAll(errs, tt.is, tt.want)
			if tt.is == nil && errors.Is(errs[0], ipam.ErrAgain) {
				t.Errorf("the answer %v is not final", errs[0])
			}
			l.wantLeft(2)
		})
	}
}

// Promise 7. A release whose answer got lost counts, even in a run that is being stopped.
func TestLostAnswerIsLookedAt(t *testing.T) {
	for name, stop := range map[string]bool{"CNS breaks off": false, "the run is stopped": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var losing atomic.Bool
			l := newLeak(t, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == pathRelease && losing.Load() {
						next.ServeHTTP(httptest.NewRecorder(), r)
						if stop {
							cancel()
						}
						panic(http.ErrAbortHandler)
					}
					next.ServeHTTP(w, r)
				})
			})
			ws := l.warrants()
			losing.Store(true)
			l.wantAll(l.node.Backend().Release(ctx, ws), nil, "")
			l.wantLeft(0)
		})
	}
}

// Promise 2. If CNS goes away, nothing is decided.
func TestNothingIsDecidedWithoutCNS(t *testing.T) {
	for name, at := range map[string]string{"before the comparison": pathDump, "before the request": pathEndpoint + deadID} {
		t.Run(name, func(t *testing.T) {
			l := newLeak(t, straight)
			ws := l.warrants()
			l.cns.OnRequest(func(_, path string) *cnstest.Answer {
				if path == at {
					panic(http.ErrAbortHandler)
				}
				return nil
			})
			l.wantAll(l.node.Backend().Release(t.Context(), ws), ipam.ErrAgain, "")
			l.cns.OnRequest(nil)
			l.wantLeft(2)
		})
	}
	t.Run("after the request", func(t *testing.T) {
		l := newLeak(t, straight)
		ws := l.warrants()
		gone := false
		l.cns.OnRequest(func(_, path string) *cnstest.Answer {
			if gone = gone || path == pathRelease; gone && path == pathDump {
				panic(http.ErrAbortHandler)
			}
			return nil
		})
		l.wantAll(l.node.Backend().Release(t.Context(), ws), ipam.ErrAgain, "may or may not have released it")
	})
}

// Promise 1, 4. A container with other network interfaces keeps its addresses, even if they
// appear after the listing. So does one whose interfaces are unknown.
func TestContainerWithOtherInterfacesIsKept(t *testing.T) {
	nic := func(kind string) string {
		return fmt.Sprintf(`{"response":{"ReturnCode":0},"endpointInfo":{"IfnameToIPMap":{"eth0":{"NICType":"InfraNIC"},"eth1":{"NICType":%q}}}}`, kind)
	}
	for _, tt := range []struct {
		name, answer string
		status       int
		want         string // empty: it may be released
	}{
		{"a delegated one", nic("FrontendNIC"), 200, `"eth1" of type FrontendNIC`},
		{"an infiniband one", nic("BackendNIC"), 200, `"eth1" of type BackendNIC`},
		{"one without a type", nic(""), 200, ""},
		{"no record", `{"response":{"ReturnCode":14},"endpointInfo":{"IfnameToIPMap":null}}`, 200, ""},
		{"CNS keeps no records", `{"ReturnCode":99,"Message":"off"}`, 200, "the network interfaces of its pod are unknown"},
		{"a failure", `{"response":{"ReturnCode":99,"Message":"no store"}}`, 200, "no store"},
		{"a type that is no text", `{"response":{"ReturnCode":0},"endpointInfo":{"IfnameToIPMap":{"eth1":{"NICType":7}}}}`, 200, `the type of network interface "eth1"`},
		{"no such path", `nothing here`, 404, "404"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLeak(t, straight)
			ws := l.warrants()
			l.cns.OnRequest(func(method, path string) *cnstest.Answer {
				if method == http.MethodGet && strings.HasPrefix(path, pathEndpoint) {
					return &cnstest.Answer{Status: tt.status, Body: tt.answer}
				}
				return nil
			})
			listed := 0
			for pool, err := range l.node.Backend().List(t.Context()) {
				for _, a := range pool.Allocations {
					listed++
					if (a.Protected == "") != (tt.want == "") || !strings.Contains(a.Protected, tt.want) {
						t.Errorf("%s is protected by %q, want %q, %v", a.Key, a.Protected, tt.want, err)
					}
				}
			}
			if listed != 2 {
				t.Errorf("%d were listed, want 2", listed)
			}
			errs := l.node.Backend().Release(t.Context(), ws)
			if tt.want == "" {
				l.wantAll(errs, nil, "")
			} else {
				l.wantAll(errs, ipam.ErrKept, tt.want)
			}
		})
	}
	l := newLeak(t, straight)
	l.cns.Change(deadID, func(a *cnstest.Address) { o := *a.Owner; o.Secondary = true; a.Owner = &o })
	listed := 0
	for pool, err := range l.node.Backend().List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range pool.Allocations {
			listed++
			if !strings.Contains(a.Protected, "besides eth0") {
				t.Errorf("%s is protected by %q", a.Key, a.Protected)
			}
		}
	}
	if listed != 2 {
		t.Errorf("%d were listed, want 2", listed)
	}
}

// Promise 4. The warrants are checked right before the request, not before an earlier one. Only
// time makes a warrant expire, hence the wait.
func TestWarrantsAreAskedRightBeforeTheRequest(t *testing.T) {
	t.Parallel()
	l := newLeak(t, straight)
	ws := l.warrants()
	l.cns.OnRequest(func(_, path string) *cnstest.Answer {
		if strings.HasPrefix(path, pathEndpoint) {
			time.Sleep(ipam.Freshness + 10*time.Millisecond)
		}
		return nil
	})
	l.wantAll(l.node.Backend().Release(t.Context(), ws), ipam.ErrAgain, "second look")
	l.cns.OnRequest(nil)
	ws[1] = l.warrants()[1]
	l.wantAll(l.node.Backend().Release(t.Context(), ws), ipam.ErrAgain, "")
	l.wantLeft(2)
	if got := l.releases.Load(); got != 0 {
		t.Errorf("CNS got %d requests, want none", got)
	}
}
