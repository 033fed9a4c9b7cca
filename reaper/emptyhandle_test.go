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

// empty handle is what is left of the entry of sandbox s1.
func emptyHandle() reaper.Allocation {
	return reaper.Allocation{Key: "net.s1", Token: "t1", EmptyHandle: true, Owner: reaper.Owner{Sandbox: "s1"}}
}

// Promise 1, 2. It may be the beginning of a allocation as well.
func TestDecisionOnEmptyHandle(t *testing.T) {
	left := finding{reaper.Suspected, reaper.EmptyHandle, ""}
	nobody := finding{reaper.Held, reaper.OwnerUnknown, "it names neither a pod nor a sandbox"}
	owner := func(o reaper.Owner) func(*reaper.Allocation) {
		return func(r *reaper.Allocation) { r.Owner = o }
	}
	for _, tt := range []struct {
		name   string
		entry  func(*reaper.Allocation)
		policy func(*policy.Policy)
		pods   []reaper.Pod
		want   finding
	}{
		{name: "nobody shows its sandbox", pods: []reaper.Pod{{Ref: web, Sandbox: "s2"}}, want: left},
		{name: "a pod shows its sandbox", pods: []reaper.Pod{{Ref: other, Sandbox: "s1"}},
			want: finding{reaper.InUse, reaper.PodPresent, "a pod shows its sandbox"}},
		{name: "a finished pod shows its sandbox", pods: []reaper.Pod{{Ref: other, Sandbox: "s1", Finished: true}}, policy: releaseAll,
			want: finding{reaper.InUse, reaper.PodPresent, "a pod shows its sandbox"}},
		{name: "a pod is mute", pods: []reaper.Pod{{Ref: other, AddressUnknown: true}}, want: left},
		{name: "its pod exists", entry: owner(reaper.Owner{Pod: web}), pods: []reaper.Pod{{Ref: web}},
			want: finding{reaper.InUse, reaper.PodPresent, ""}},
		{name: "its pod exists with another sandbox", entry: owner(reaper.Owner{Pod: web, Sandbox: "s1"}),
			pods: []reaper.Pod{{Ref: web, Sandbox: "s2"}}, want: finding{reaper.InUse, reaper.PodPresent, ""}},
		{name: "its guessed pod exists", entry: func(r *reaper.Allocation) { r.Owner, r.Inferred = reaper.Owner{Pod: web}, true },
			pods: []reaper.Pod{{Ref: web}}, want: finding{reaper.InUse, reaper.PodPresent, ""}},
		{name: "its pod does not exist", entry: owner(reaper.Owner{Pod: web}), want: left},
		{name: "its guessed pod does not exist", entry: func(r *reaper.Allocation) { r.Owner, r.Inferred = reaper.Owner{Pod: web}, true },
			want: left},
		{name: "it names nobody", entry: owner(reaper.Owner{}), want: nobody},
		{name: "it names half a pod", entry: owner(reaper.Owner{Pod: reaper.PodRef{Name: "a/b/c"}}), want: nobody},
		{name: "it names a namespace, and a sandbox", entry: owner(reaper.Owner{Pod: reaper.PodRef{Namespace: "default"}, Sandbox: "s1"}),
			want: nobody},
		{name: "it cannot be understood", entry: func(r *reaper.Allocation) { r.Unreadable = "no JSON" },
			want: finding{reaper.Held, reaper.Unreadable, "no JSON"}},
		{name: "the store could not notice that it is used again", entry: func(r *reaper.Allocation) { r.Token = "" },
			want: finding{reaper.Held, reaper.NoToken, ""}},
		{name: "too young", entry: func(r *reaper.Allocation) { r.Created = noon.Add(-time.Minute) },
			want: finding{reaper.Held, reaper.TooYoung, ""}},
		{name: "a rule holds it", entry: owner(reaper.Owner{Pod: web}), policy: func(p *policy.Policy) {
			p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"web"}}, Hold: true}}
		}, want: finding{reaper.Held, reaper.RuleHold, ""}},
		{name: "a rule holds another's", policy: func(p *policy.Policy) {
			p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"web"}}, Hold: true}}
		}, want: left},
		{name: "another's namespace is excluded", policy: func(p *policy.Policy) {
			p.Namespaces.Exclude = []string{"kube-system"}
		}, want: left},
		{name: "a rule holds its backend", policy: func(p *policy.Policy) {
			p.Rules = []policy.Rule{{Match: policy.Match{Backends: []string{"*"}}, Hold: true}}
		}, want: finding{reaper.Held, reaper.RuleHold, ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := emptyHandle()
			if tt.entry != nil {
				tt.entry(&r)
			}
			s := scene{pools: []reaper.Pool{poolOf(r)}, pods: tt.pods, policy: tt.policy}
			equal(t, "verdict", found(s.judge(t, noon)[0]), tt.want)
		})
	}
}

// Promise 1. What an ADD writes first looks like it for as long as the ADD takes,
// whatever the age that the store tells.
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
			r := emptyHandle()
			r.Created = tt.created
			s := scene{pools: []reaper.Pool{poolOf(r)}}
			s.policy = func(p *policy.Policy) {
				p.GracePeriod, p.MinAge = &policy.Duration{Duration: tt.grace}, &policy.Duration{Duration: tt.minAge}
			}
			s.ledger = s.seen(t, noon)
			for at, want := range map[time.Time]reaper.Verdict{
				noon:                            reaper.Suspected,
				noon.Add(tt.want - time.Second): reaper.Suspected,
				noon.Add(tt.want):               reaper.Orphaned,
			} {
				equal(t, "standing", s.judge(t, at)[0].Verdict, want)
			}
			s.pools[0].Allocations[0].Token = "t2"
			equal(t, "standing once it was written again", s.judge(t, noon.Add(time.Hour))[0].Verdict, reaper.Suspected)
		})
	}
}

// remnantHearing is a empty handle of that owner an hour after it was first seen.
func emptyHandleHearing(t *testing.T, owner reaper.Owner) hearing {
	t.Helper()
	r := emptyHandle()
	r.Owner = owner
	s := scene{pools: []reaper.Pool{poolOf(r)}}
	s.ledger = s.seen(t, noon)
	h := hearing{policy: backendtest.Impatient(), pods: &backendtest.Pods{}, census: censusOf()}
	h.orphans = reaper.MakePlan(s.judge(t, noon.Add(time.Hour))).Orphans()
	equal(t, "orphans", len(h.orphans), 1)
	return h
}

// Promise 2.
func TestOnlyAClearAbsenceConfirmsAEmptyHandle(t *testing.T) {
	h := emptyHandleHearing(t, reaper.Owner{Pod: web})
	ws, errs := reaper.NewConfirmer(&mumbler{presence: reaper.Unknown}, h.census, 1).Confirm(t.Context(), h.orphans)
	refused(t, ws[0], errs[0], reaper.ErrAgain)
}

// Promise 1, 4. One that names no pod is confirmed by all of them.
func TestEmptyHandleIsConfirmed(t *testing.T) {
	named := reaper.Owner{Pod: web, Sandbox: "s1"}
	for _, tt := range []struct {
		name  string
		owner reaper.Owner
		now   reaper.Pod
		call  string
		want  error
	}{
		{"nobody has its sandbox", reaper.Owner{Sandbox: "s1"}, reaper.Pod{Ref: other}, "list pods", nil},
		{"a pod has its sandbox", reaper.Owner{Sandbox: "s1"}, reaper.Pod{Ref: other, Sandbox: "s1"}, "list pods", reaper.ErrReturned},
		{"its pod is absent", named, reaper.Pod{Ref: other}, "get pod default/web", nil},
		{"its pod is back", named, reaper.Pod{Ref: web}, "get pod default/web", reaper.ErrReturned},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := emptyHandleHearing(t, tt.owner)
			pods := h.pods
			pods.Add(tt.now)
			ws, errs := h.confirmer(1).Confirm(t.Context(), h.orphans)
			equal(t, "calls", pods.Calls(), []string{tt.call})
			if tt.want != nil {
				refused(t, ws[0], errs[0], tt.want)
			} else if _, err := ws[0].Allocation(); errs[0] != nil || err != nil {
				t.Errorf("confirm: %v, %v, want a warrant", errs[0], err)
			}
			pods.OnCall(func(string) error { return errors.New("no answer") })
			ws, errs = h.confirmer(1).Confirm(t.Context(), h.orphans)
			refused(t, ws[0], errs[0], reaper.ErrAgain)
		})
	}
}

// Promise 7, 8. Runs clean up what a release left behind, and no limit on
// addresses stands in their way.
func TestEmptyHandlesAreReleasedWhateverTheLimits(t *testing.T) {
	var left []reaper.Allocation
	for i := range 50 {
		r := emptyHandle()
		r.Key = fmt.Sprint("net.s", i)
		left = append(left, r)
	}
	handles := reaper.Pool{Name: "handles", Allocations: left}
	w := newWorld(fixedStore{poolOf(webEntry()), handles})
	w.pods.Add(showing(web, ip1))
	one := 1
	w.policy.Limits.MaxReleases, w.policy.Limits.MinEntries = &one, new(int)
	equal(t, "first summary", w.run(t).Summary, reaper.Counts{Entries: 51, InUse: 1, Suspected: 50})
	w.now = noon.Add(4 * time.Minute)
	report := w.run(t)
	equal(t, "summary", report.Summary, reaper.Counts{Entries: 51, InUse: 1, Planned: 50, Released: 50})
	equal(t, "pools", report.Pools, []reaper.PoolReport{})
	for _, e := range report.Entries[1:] {
		equal(t, "address", e.IP, "")
		equal(t, "reason", e.Reason, reaper.EmptyHandle)
	}
}

// Promise 2, 9. They endanger nobody, yet a cluster without pods is not believed.
func TestEmptyHandlesAreRefusedInAnEmptyCluster(t *testing.T) {
	w := newWorld(fixedStore{poolOf(emptyHandle())})
	w.run(t)
	w.now = noon.Add(time.Hour)
	_, err := reaper.Run(t.Context(), w.options())
	var limit *reaper.LimitError
	if !errors.As(err, &limit) {
		t.Fatalf("run: %v, want a LimitError", err)
	}
	equal(t, "refusal", *limit, reaper.LimitError{Limit: "the cluster has no pods", Allowed: "none"})
}

// An address that is given by mistake makes no difference.
func TestEmptyHandleIsJudgedByNoAddress(t *testing.T) {
	for _, ip := range []netip.Addr{{}, ip1} {
		r := emptyHandle()
		r.IP = ip
		s := scene{pools: []reaper.Pool{poolOf(r)}, pods: []reaper.Pod{showing(other, ip1)}}
		equal(t, "verdict", found(s.judge(t, noon)[0]), finding{reaper.Suspected, reaper.EmptyHandle, ""})
	}
}
