package reaper_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// emptyHandle returns the rest of the allocation of sandbox s1.
func emptyHandle() reaper.Allocation {
	return reaper.Allocation{Key: "net.s1", Token: "t1", EmptyHandle: true, Owner: reaper.Owner{Sandbox: "s1"}}
}

// Promise 1, 2. An empty handle may also be the beginning of an allocation.
func TestDecisionOnEmptyHandle(t *testing.T) {
	left := decision{reaper.Suspected, reaper.EmptyHandle, ""}
	noOwner := decision{reaper.Held, reaper.OwnerUnknown, "it names neither a pod nor a sandbox"}
	owner := func(o reaper.Owner) func(*reaper.Allocation) {
		return func(a *reaper.Allocation) { a.Owner = o }
	}
	for _, tt := range []struct {
		name   string
		entry  func(*reaper.Allocation)
		policy func(*policy.Policy)
		pods   []reaper.Pod
		want   decision
	}{
		{name: "no pod shows its sandbox", pods: []reaper.Pod{{Ref: web, Sandbox: "s2"}}, want: left},
		{name: "a pod shows its sandbox", pods: []reaper.Pod{{Ref: other, Sandbox: "s1"}},
			want: decision{reaper.InUse, reaper.PodPresent, "a pod shows its sandbox"}},
		{name: "a finished pod shows its sandbox", pods: []reaper.Pod{{Ref: other, Sandbox: "s1", Finished: true}}, policy: releaseAll,
			want: decision{reaper.InUse, reaper.PodPresent, "a pod shows its sandbox"}},
		{name: "a pod does not show its addresses", pods: []reaper.Pod{{Ref: other, AddressUnknown: true}}, want: left},
		{name: "its pod exists", entry: owner(reaper.Owner{Pod: web}), pods: []reaper.Pod{{Ref: web}},
			want: decision{reaper.InUse, reaper.PodPresent, ""}},
		{name: "its pod exists with another sandbox", entry: owner(reaper.Owner{Pod: web, Sandbox: "s1"}),
			pods: []reaper.Pod{{Ref: web, Sandbox: "s2"}}, want: decision{reaper.InUse, reaper.PodPresent, ""}},
		{name: "its inferred pod exists", entry: func(a *reaper.Allocation) { a.Owner, a.Inferred = reaper.Owner{Pod: web}, true },
			pods: []reaper.Pod{{Ref: web}}, want: decision{reaper.InUse, reaper.PodPresent, ""}},
		{name: "its pod does not exist", entry: owner(reaper.Owner{Pod: web}), want: left},
		{name: "its inferred pod does not exist", entry: func(a *reaper.Allocation) { a.Owner, a.Inferred = reaper.Owner{Pod: web}, true },
			want: left},
		{name: "it names no owner", entry: owner(reaper.Owner{}), want: noOwner},
		{name: "it names half a pod", entry: owner(reaper.Owner{Pod: reaper.PodRef{Name: "a/b/c"}}), want: noOwner},
		{name: "it names a namespace, and a sandbox", entry: owner(reaper.Owner{Pod: reaper.PodRef{Namespace: "default"}, Sandbox: "s1"}),
			want: noOwner},
		{name: "it cannot be understood", entry: func(a *reaper.Allocation) { a.Unreadable = "no JSON" },
			want: decision{reaper.Held, reaper.Unreadable, "no JSON"}},
		{name: "the store could not notice that it is used again", entry: func(a *reaper.Allocation) { a.Token = "" },
			want: decision{reaper.Held, reaper.NoToken, ""}},
		{name: "too young", entry: func(a *reaper.Allocation) { a.Created = noon.Add(-time.Minute) },
			want: decision{reaper.Held, reaper.TooYoung, "it is too young until 2026-03-01T12:04:00Z"}},
		{name: "a rule holds it", entry: owner(reaper.Owner{Pod: web}), policy: func(p *policy.Policy) {
			p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"web"}}, Hold: true}}
		}, want: decision{reaper.Held, reaper.RuleHold, "rules[0] holds what it matches: pods web"}},
		{name: "a rule holds another's", policy: func(p *policy.Policy) {
			p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"web"}}, Hold: true}}
		}, want: left},
		{name: "another's namespace is excluded", policy: func(p *policy.Policy) {
			p.Namespaces.Exclude = []string{"kube-system"}
		}, want: left},
		{name: "a rule holds its backend", policy: func(p *policy.Policy) {
			p.Rules = []policy.Rule{{Match: policy.Match{Backends: []string{"*"}}, Hold: true}}
		}, want: decision{reaper.Held, reaper.RuleHold, "rules[0] holds what it matches: backends *"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := emptyHandle()
			if tt.entry != nil {
				tt.entry(&a)
			}
			s := situation{pools: []reaper.Pool{poolOf(a)}, pods: tt.pods, policy: tt.policy}
			equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), tt.want)
		})
	}
}

// Promise 1. An ADD writes the handle first. As long as the ADD takes, its handle is
// empty, no matter which age the store names.
func TestEmptyHandleWaitsOutAnAddInFlight(t *testing.T) {
	for _, tt := range []struct {
		name          string
		created       time.Time
		grace, minAge time.Duration
		want          time.Duration
	}{
		{"no grace and no age", time.Time{}, 0, 0, 4 * time.Minute},
		{"no grace, and old", noon.Add(-24 * time.Hour), 0, 0, 4 * time.Minute},
		{"a longer age", time.Time{}, time.Minute, 6 * time.Minute, 6 * time.Minute},
		{"a longer grace", time.Time{}, 9 * time.Minute, 6 * time.Minute, 9 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := emptyHandle()
			a.Created = tt.created
			s := situation{pools: []reaper.Pool{poolOf(a)}}
			s.policy = func(p *policy.Policy) {
				p.GracePeriod, p.MinAge = &policy.Duration{Duration: tt.grace}, &policy.Duration{Duration: tt.minAge}
			}
			s.ledger = s.seen(t, noon)
			for at, want := range map[time.Time]reaper.Verdict{
				noon: reaper.Suspected,
				noon.Add(tt.want - early(tt.grace) - time.Second): reaper.Suspected,
				noon.Add(tt.want): reaper.Orphaned,
			} {
				equal(t, "verdict", s.judge(t, at)[0].Verdict, want)
			}
			s.pools[0].Allocations[0].Token = "t2"
			equal(t, "verdict after it was written again", s.judge(t, noon.Add(time.Hour))[0].Verdict, reaper.Suspected)
		})
	}
}

// secondLookAtEmptyHandle returns the second look at an empty handle of that owner, an
// hour after a run first saw it.
func secondLookAtEmptyHandle(t *testing.T, owner reaper.Owner) secondLook {
	t.Helper()
	a := emptyHandle()
	a.Owner = owner
	s := situation{pools: []reaper.Pool{poolOf(a)}}
	s.ledger = s.seen(t, noon)
	look := secondLook{policy: backendtest.Impatient(), pods: &backendtest.Pods{}, census: censusOf()}
	look.orphans = reaper.MakePlan(s.judge(t, noon.Add(time.Hour))).Orphans()
	equal(t, "orphans", len(look.orphans), 1)
	return look
}

// Promise 2.
func TestOnlyAClearAbsenceConfirmsAnEmptyHandle(t *testing.T) {
	look := secondLookAtEmptyHandle(t, reaper.Owner{Pod: web})
	ws, errs := reaper.NewConfirmer(&vagueCluster{presence: reaper.Unknown}, look.census, 1).Confirm(t.Context(), look.orphans)
	refused(t, ws[0], errs[0], reaper.ErrAgain)
}

// Promise 1, 4. If the handle names no pod, the second look lists all pods.
func TestEmptyHandleIsConfirmed(t *testing.T) {
	named := reaper.Owner{Pod: web, Sandbox: "s1"}
	for _, tt := range []struct {
		name  string
		owner reaper.Owner
		now   reaper.Pod
		call  string
		want  error
	}{
		{"no pod has its sandbox", reaper.Owner{Sandbox: "s1"}, reaper.Pod{Ref: other}, "list pods", nil},
		{"a pod has its sandbox", reaper.Owner{Sandbox: "s1"}, reaper.Pod{Ref: other, Sandbox: "s1"}, "list pods", reaper.ErrReturned},
		{"its pod is absent", named, reaper.Pod{Ref: other}, "get pod default/web", nil},
		{"its pod is back", named, reaper.Pod{Ref: web}, "get pod default/web", reaper.ErrReturned},
	} {
		t.Run(tt.name, func(t *testing.T) {
			look := secondLookAtEmptyHandle(t, tt.owner)
			pods := look.pods
			pods.Add(tt.now)
			ws, errs := look.confirmer(1).Confirm(t.Context(), look.orphans)
			equal(t, "calls", pods.Calls(), []string{tt.call})
			if tt.want != nil {
				refused(t, ws[0], errs[0], tt.want)
			} else if _, err := ws[0].Allocation(); errs[0] != nil || err != nil {
				t.Errorf("confirm: %v, %v, want a warrant", errs[0], err)
			}
			pods.OnCall(func(string) error { return errors.New("no answer") })
			ws, errs = look.confirmer(1).Confirm(t.Context(), look.orphans)
			refused(t, ws[0], errs[0], reaper.ErrAgain)
		})
	}
}

// Promise 7, 8. Runs remove the rest of a release, and the limits on addresses do not
// stop them.
func TestLimitsDoNotCountEmptyHandles(t *testing.T) {
	var left []reaper.Allocation
	for i := range 50 {
		a := emptyHandle()
		a.Key = fmt.Sprint("net.s", i)
		left = append(left, a)
	}
	handles := reaper.Pool{Name: "handles", Allocations: left}
	h := newHarness(fixedStore{poolOf(webAllocation()), handles})
	h.pods.Add(showing(web, ip1))
	one := 1
	h.policy.Limits.MaxReleases, h.policy.Limits.MinEntries = &one, new(int)
	equal(t, "first summary", h.run(t).Summary, reaper.Counts{Entries: 51, InUse: 1, Suspected: 50})
	h.now = noon.Add(4 * time.Minute)
	report := h.run(t)
	equal(t, "summary", report.Summary, reaper.Counts{Entries: 51, InUse: 1, Planned: 50, Released: 50})
	equal(t, "pools", report.Pools, []reaper.PoolReport{})
	for _, e := range report.Entries[1:] {
		equal(t, "address", e.IP, "")
		equal(t, "reason", e.Reason, reaper.EmptyHandle)
	}
}

// Promise 2, 9. An empty handle endangers no pod. Still, a census without pods is not
// believed.
func TestEmptyHandlesAreRefusedInAnEmptyCluster(t *testing.T) {
	h := newHarness(fixedStore{poolOf(emptyHandle())})
	h.run(t)
	h.now = noon.Add(time.Hour)
	_, err := reaper.Run(t.Context(), h.options())
	var limit *reaper.LimitError
	if !errors.As(err, &limit) {
		t.Fatalf("run: %v, want a LimitError", err)
	}
	equal(t, "refusal", *limit, reaper.LimitError{Limit: "the cluster has no pods", Allowed: "none"})
}

// A backend may set an address of an empty handle by mistake.
func TestAddressOfAnEmptyHandleIsIgnored(t *testing.T) {
	for _, ip := range []netip.Addr{{}, ip1} {
		a := emptyHandle()
		a.IP = ip
		s := situation{pools: []reaper.Pool{poolOf(a)}, pods: []reaper.Pod{showing(other, ip1)}}
		equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), decision{reaper.Suspected, reaper.EmptyHandle, ""})
	}
}
