package ipam_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

// Promise 2. What may succeed later wraps ErrAgain, and what never can does not.
func TestErrorOfWhichALaterRequestMayGetRid(t *testing.T) {
	connection := errors.New("connection refused")
	for _, tt := range []struct {
		name  string
		err   error
		again bool
		wait  time.Duration
	}{
		{"none", nil, false, 0},
		{"any", connection, true, 0},
		{"one that is refused", fmt.Errorf("%w: forbidden", ipam.ErrRefused), false, 0},
		{"one that says when", fmt.Errorf("list: %w", &ipam.RetryAfterError{Err: connection, After: time.Second}), true, time.Second},
	} {
		got := ipam.Again(tt.err)
		if errors.Is(got, ipam.ErrAgain) != tt.again || ipam.RetryAfter(got) != tt.wait || !errors.Is(got, tt.err) {
			t.Errorf("%s: %v, wait %v", tt.name, got, ipam.RetryAfter(got))
		}
		if tt.err != nil && got.Error() != tt.err.Error() {
			t.Errorf("%s reads %q", tt.name, got)
		}
	}
}

// Promise 2. A protection without a TTL never ends.
func TestWhenAProtectionEnds(t *testing.T) {
	noon, hour := reapertest.Noon, time.Hour
	for _, tt := range []struct {
		name string
		p    ipam.Protection
		want time.Time
		ends bool
	}{
		{"without a TTL", ipam.Protection{Deleted: noon}, time.Time{}, false},
		{"since a run saw the pod gone", ipam.Protection{TTL: &hour}, noon.Add(time.Hour), true},
		{"since the pod was deleted", ipam.Protection{TTL: &hour, Deleted: noon.Add(-hour)}, noon, true},
	} {
		until, ends := tt.p.Until(noon)
		equal(t, "end "+tt.name, until, tt.want)
		equal(t, "ends "+tt.name, ends, tt.ends)
	}
}

// The names of an allocation and its owner, for people.
func TestNamesOfAllocations(t *testing.T) {
	for want, o := range map[string]ipam.Owner{
		"pod default/web": {Pod: reapertest.Web, Sandbox: "s1"}, "sandbox s1": {Sandbox: "s1"}, "an owner without a name": {},
	} {
		equal(t, "owner", o.String(), want)
	}
	for want, a := range map[string]ipam.Allocation{"10.0.0.1": webAllocation(), "net.s1": {Key: "net.s1"}} {
		equal(t, "label", a.Label(), want)
	}
	for _, tt := range []struct {
		pod  ipam.PodRef
		want bool
	}{{reapertest.Web, true}, {ipam.PodRef{Name: "web"}, false}, {ipam.PodRef{Namespace: "default"}, false}} {
		a := ipam.Allocation{Owner: ipam.Owner{Pod: tt.pod}}
		equal(t, "names "+tt.pod.String(), a.NamesPod(), tt.want)
	}
	for status, want := range map[ipam.Status]string{
		ipam.StatusFailed: "failed", ipam.StatusPartial: "partial", ipam.StatusSkipped: "skipped", ipam.StatusOK: "ok",
	} {
		text, err := status.MarshalJSON()
		equal(t, "error", err, nil)
		equal(t, "status", string(text), `"`+want+`"`)
	}
}

// Promise 1. Only an allocation that can be read, is a pod's and holds an address proves whose the
// address is.
func TestAllocationThatProvesItsOwner(t *testing.T) {
	for _, tt := range []struct {
		name          string
		change        func(*ipam.Allocation)
		holds, proves bool
	}{
		{"a pod's", func(*ipam.Allocation) {}, true, true},
		{"it cannot be read", func(a *ipam.Allocation) { a.Unreadable = "no JSON" }, true, false},
		{"not a pod's", func(a *ipam.Allocation) { a.Foreign = "a tunnel" }, true, false},
		{"an empty handle", func(a *ipam.Allocation) { a.EmptyHandle = true }, false, false},
	} {
		a := webAllocation()
		tt.change(&a)
		equal(t, "holds an address: "+tt.name, a.HoldsAddress(), tt.holds)
		equal(t, "proves its owner: "+tt.name, a.ProvesOwner(), tt.proves)
	}
}

// A context says how its requests wait. Without one of these, they wait as long as it lasts.
func TestTurnOfAContext(t *testing.T) {
	at := reapertest.Noon
	for _, tt := range []struct {
		name string
		ctx  context.Context
		want ipam.Turn
	}{
		{"of any context", t.Context(), ipam.Turn{}},
		{"unqueued", ipam.Unqueued(t.Context()), ipam.Turn{Unqueued: true}},
		{"polite", ipam.Polite(t.Context()), ipam.Turn{Unqueued: true, Polite: true}},
		{"sent by", ipam.SendBy(t.Context(), at, nil), ipam.Turn{SendBy: at}},
	} {
		equal(t, tt.name, ipam.TurnOf(tt.ctx), tt.want)
	}
}

// A prefix has its first and its last address, and all between.
func TestSpanOfAPrefix(t *testing.T) {
	for prefix, want := range map[string][2]string{
		"10.0.0.9/29": {"10.0.0.8", "10.0.0.15"}, "10.0.0.1/32": {"10.0.0.1", "10.0.0.1"}, "fd00::/121": {"fd00::", "fd00::7f"},
	} {
		s := ipam.SpanOf(netip.MustParsePrefix(prefix))
		equal(t, prefix, [2]string{s.First.String(), s.Last.String()}, want)
	}
}

// What walks through the causes of an error meets no nil among them.
func TestWordedErrorWrapsWhatIsNotNil(t *testing.T) {
	err := ipam.Worded("it has another text", nil, ipam.ErrAgain, nil)
	causes, _ := err.(interface{ Unwrap() []error }) //nolint:errorlint // it is the error itself
	if err.Error() != "it has another text" || !errors.Is(err, ipam.ErrAgain) || len(causes.Unwrap()) != 1 {
		t.Errorf("%v wraps %v", err, causes.Unwrap())
	}
}
