package azurecns

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/azurecns/cnstest"
	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// records returns the records of both addresses, and releases these.
func (l *leak) records() []ipam.Record {
	l.Helper()
	b := l.node.Backend()
	var listed []ipam.Allocation
	for pool, err := range b.List(l.Context()) {
		if err != nil {
			l.Fatal(err)
		}
		listed = append(listed, pool.Allocations...)
	}
	stored, err := b.Record(l.Context(), listed)
	if err != nil || len(stored) != 2 {
		l.Fatalf("%d records: %v", len(stored), err)
	}
	var records []ipam.Record
	for i, a := range listed {
		records = append(records, ipam.Record{Backend: Name, Pool: poolName, Key: a.Key, IP: a.IP.String(), Stored: stored[i]})
	}
	l.wantAll(b.Release(l.Context(), l.warrants()), nil, "")
	return records
}

// restore puts records back. That the answers without a permit are the same, and that nothing is written then,
// is proved by the conformance suite.
func (l *leak) restore(records ...ipam.Record) []error {
	return l.node.Backend().Restore(l.Context(), poolName, records, backendtest.Permit)
}

// Promise 10. The addresses of a container come back with one request, and so does the record
// of its network interfaces.
func TestRestoreBringsTheInterfacesBack(t *testing.T) {
	l := newLeak(t, straight)
	before, err := l.node.Snapshot()
	if err != nil || len(before) != 2 || !strings.Contains(before[poolName+"/"+l.pair[0].Key], "azv00000000") {
		t.Fatalf("CNS has %v, %v, want two addresses and the interface azv00000000", before, err)
	}
	requests := 0
	records := l.records()
	l.wantLeft(0)
	l.cns.OnRequest(func(_, path string) *cnstest.Answer {
		if path == pathRequest {
			requests++
		}
		return nil
	})
	l.wantAll(l.restore(records...), nil, "")
	after, err := l.node.Snapshot()
	if diff := cmp.Diff(before, after); diff != "" || err != nil || requests != 1 {
		t.Errorf("%d requests, %v (-before +after):\n%s", requests, err, diff)
	}
	l.wantAll(l.restore(records...), ipam.ErrPresent, "")
}

// Promise 10. After a restart, CNS names the container of a restored address differently.
func TestRestoredAddressIsThereAfterARestart(t *testing.T) {
	l := newLeak(t, straight)
	records := l.records()
	l.wantAll(l.restore(records...), nil, "")
	l.cns.Restart()
	l.wantAll(l.restore(records...), ipam.ErrPresent, "")
}

// Promise 10. CNS gives a container all addresses at the same time, so some of them cannot
// follow later.
func TestRestoreOfAPartSaysThatTheRestCannotFollow(t *testing.T) {
	l := newLeak(t, straight)
	records := l.records()
	l.wantAll(l.restore(records[0]), nil, "")
	l.wantAll(backendtest.Compare(t.Context(), l.node.Backend(), poolName, records[1:]), nil, "all addresses of a container at once")
	l.wantAll(l.restore(records[1]), nil, "all addresses of a container at once")
	l.wantLeft(1)
}

// Promise 1, 10. An address that is not free is not restored.
func TestRestoreTakesNothingAway(t *testing.T) {
	set := func(l *leak, change func(a *cnstest.Address)) {
		a := cnstest.Address{State: cnstest.Available, ID: l.pair[0].Key, IP: l.pair[0].Key, Network: "nc"}
		change(&a)
		l.cns.Set(l.pair[0].Key, a)
	}
	for name, tt := range map[string]struct {
		meanwhile func(l *leak)
		want      string
	}{
		"another container": {func(l *leak) {
			owner := ipam.Owner{Pod: ipam.PodRef{Namespace: "shop", Name: "web-9"}, Sandbox: liveID}
			if a, err := l.node.Reserve("a", owner); err != nil || a.Key != l.pair[0].Key {
				l.Fatalf("%s is reserved: %v", a.Key, err)
			}
		}, "container " + liveID + " of pod shop/web-9"},
		"given back": {func(l *leak) { set(l, func(a *cnstest.Address) { a.State = cnstest.PendingRelease }) }, "PendingRelease"},
		"gone":       {func(l *leak) { set(l, func(a *cnstest.Address) { a.IP = "10.9.9.9" }) }, "no longer has this address"},
		"unreadable": {func(l *leak) { set(l, func(a *cnstest.Address) { a.State = cnstest.Assigned }) }, "names no container"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeak(t, straight)
			records := l.records()
			tt.meanwhile(l)
			before, _ := l.node.Snapshot()
			l.wantAll(l.restore(records[0]), ipam.ErrTaken, tt.want)
			after, _ := l.node.Snapshot()
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the restore changed CNS:\n%s", diff)
			}
		})
	}
}

// Promise 1, 10. Between the comparison and the request, another container may get one of the
// addresses. CNS then gives none of them.
func TestRestoreThatComesTooLateTakesNothing(t *testing.T) {
	l := newLeak(t, straight)
	records := l.records()
	once := false
	l.cns.OnRequest(func(_, path string) *cnstest.Answer {
		if path == pathRequest && !once {
			once = true
			if _, err := l.node.Reserve("a", ipam.Owner{Pod: ipam.PodRef{Namespace: "shop", Name: "web-9"}, Sandbox: liveID}); err != nil {
				l.Error(err)
			}
		}
		return nil
	})
	errs := l.restore(records...)
	l.wantAll(errs[:1], ipam.ErrTaken, "web-9")
	l.wantAll(errs[1:], nil, "CNS answered 32")
	l.wantLeft(1)
}

// Promise 7. What CNS answers to a restore is not believed.
func TestAnswersToARestoreAreNotBelieved(t *testing.T) {
	for _, tt := range []struct{ name, method, path, answer, want string }{
		{"success for nothing", http.MethodPost, pathRequest, `{"response":{"ReturnCode":0}}`, "has not assigned it"},
		{"a failure", http.MethodPost, pathRequest, `{"response":{"ReturnCode":32,"Message":"none left"}}`, "CNS answered 32: none left"},
		{"no interfaces", http.MethodPatch, pathEndpoint + deadID, `{"ReturnCode":23,"Message":"no"}`, "without the record of the network interfaces: CNS answered 23"},
		{"no code for the interfaces", http.MethodPatch, pathEndpoint + deadID, `{}`, "without the record of the network interfaces: the answer has no ReturnCode"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLeak(t, straight)
			records := l.records()
			l.cns.OnRequest(func(method, path string) *cnstest.Answer {
				if method == tt.method && path == tt.path {
					return &cnstest.Answer{Status: 200, Body: tt.answer}
				}
				return nil
			})
			l.wantAll(l.restore(records...), nil, tt.want)
		})
	}
}

// Promise 6, 10. A record that Record cannot have returned is refused.
func TestStrangeRecordsAreRefused(t *testing.T) {
	l := newLeak(t, straight)
	good := l.records()[0]
	for name, change := range map[string]func(r *ipam.Record){
		"no address":      func(r *ipam.Record) { r.Stored = json.RawMessage(`{}`) },
		"another address": func(r *ipam.Record) { r.IP, r.Key = "10.241.0.9", "10.241.0.9" },
		"another key":     func(r *ipam.Record) { r.Key = "10.241.0.9" },
		"a free address": func(r *ipam.Record) {
			r.Stored = json.RawMessage(strings.Replace(string(r.Stored), "Assigned", "Available", 1))
		},
		"no container": func(r *ipam.Record) { r.Stored = json.RawMessage(strings.ReplaceAll(string(r.Stored), deadID, "x")) },
		"interfaces of no shape": func(r *ipam.Record) {
			r.Stored = json.RawMessage(strings.Replace(string(r.Stored), `{"IPv4"`, `7,"x":{"IPv4"`, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			change(&r)
			if string(r.Stored) == string(good.Stored) && r.Key == good.Key {
				t.Fatal("the record is the same")
			}
			if err := l.restore(r)[0]; err == nil || errors.Is(err, ipam.ErrTaken) || errors.Is(err, ipam.ErrPresent) {
				t.Errorf("the answer is %v, want another error", err)
			}
			l.wantLeft(0)
		})
	}
}
