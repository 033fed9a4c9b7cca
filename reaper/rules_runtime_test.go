package reaper_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// lease returns an allocation on a node, of sandbox s1, an hour old at noon.
func lease() reaper.Allocation {
	return reaper.Allocation{
		Key: "10.0.0.1", IP: ip1, Token: "t1", ByRuntime: true, Created: noon.Add(-time.Hour),
		Owner: reaper.Owner{Sandbox: "s1", Interface: "eth0"},
	}
}

// Promise 1, 2. On a node, the container runtime decides, and any other evidence only keeps.
func TestDecisionOnNode(t *testing.T) {
	gone := decision{reaper.Suspected, reaper.SandboxAbsent, ""}
	present := decision{reaper.InUse, reaper.SandboxPresent, ""}
	brokeOff := decision{reaper.Suspected, reaper.SandboxAbsent, "an ADD broke off before it wrote an owner"}
	blank := func(a *reaper.Allocation) { a.Owner, a.Blank = reaper.Owner{}, true }
	for _, tt := range []struct {
		name      string
		lease     func(*reaper.Allocation)
		policy    func(*policy.Policy)
		pods      []reaper.Pod
		sandboxes []string // nil: not read
		want      decision
	}{
		{name: "the sandbox exists", sandboxes: []string{"s0", "s1"}, want: present},
		{name: "a sandbox begins with the ID", sandboxes: []string{"s0", "s1234"}, want: present},
		{name: "the sandbox is gone", sandboxes: []string{"s", "s0", "s2"}, want: gone},
		{name: "there is none", sandboxes: []string{}, want: gone},
		{name: "the sandboxes were not read", want: decision{reaper.Held, reaper.NoCensus, ""}},
		{name: "it names no sandbox", lease: func(a *reaper.Allocation) { a.Owner.Sandbox = "" }, sandboxes: []string{"s1"},
			want: decision{reaper.Held, reaper.OwnerUnknown, "it names no sandbox"}},
		{name: "it names a pod and no sandbox", lease: func(a *reaper.Allocation) { a.Owner = reaper.Owner{Pod: web} }, sandboxes: []string{"s2"},
			want: decision{reaper.Held, reaper.OwnerUnknown, "it names no sandbox"}},
		{name: "a pod shows the address", sandboxes: []string{"s2"}, pods: []reaper.Pod{showing(other, ip1)},
			want: decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"}},
		{name: "a finished pod shows the address", sandboxes: []string{"s2"}, pods: []reaper.Pod{finished(showing(other, ip1))}, want: gone},
		{name: "its pod shows the address", lease: func(a *reaper.Allocation) { a.Owner.Pod = web }, sandboxes: []string{"s2"},
			pods: []reaper.Pod{showing(web, ip1)}, want: decision{reaper.InUse, reaper.PodPresent, ""}},
		{name: "its pod exists in another sandbox", lease: func(a *reaper.Allocation) { a.Owner.Pod = web }, sandboxes: []string{"s2"},
			pods: []reaper.Pod{showing(web, ip2)}, want: gone},
		{name: "a pod hides its address", sandboxes: []string{"s2"}, pods: []reaper.Pod{{Ref: other, AddressUnknown: true}}, want: gone},
		{name: "it cannot be understood", lease: func(a *reaper.Allocation) { a.Unreadable = "it is empty" }, sandboxes: []string{"s2"},
			want: decision{reaper.Held, reaper.Unreadable, "it is empty"}},
		{name: "an ADD broke off before it named a sandbox", lease: blank, sandboxes: []string{"s2"}, want: brokeOff},
		{name: "the same, and the policy is for other pods", lease: blank, sandboxes: []string{"s2"},
			policy: func(p *policy.Policy) { p.Namespaces.Include = []string{"shop"} }, want: brokeOff},
		{name: "the same, and a rule holds pods", lease: blank, sandboxes: []string{"s2"},
			policy: func(p *policy.Policy) {
				p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"*"}}, Hold: true}}
			}, want: brokeOff},
		{name: "the same, and the sandboxes were not read", lease: blank, want: decision{reaper.Held, reaper.NoCensus, ""}},
		{name: "the same, and a pod shows the address", lease: blank, sandboxes: []string{"s2"}, pods: []reaper.Pod{showing(other, ip1)},
			want: decision{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"}},
		{name: "something protects it", lease: func(a *reaper.Allocation) { a.Protected = "not of the runtime" }, sandboxes: []string{"s2"},
			want: decision{reaper.Held, reaper.Protected, "not of the runtime"}},
		{name: "it is younger than a sandbox that is being made", lease: func(a *reaper.Allocation) { a.Created = noon.Add(-9 * time.Minute) },
			policy: func(p *policy.Policy) { p.MinAge = &policy.Duration{} }, sandboxes: []string{"s2"},
			want: decision{reaper.Held, reaper.TooYoung, "it is too young until 2026-03-01T12:01:00Z"}},
		{name: "it is younger than the policy allows", policy: func(p *policy.Policy) { p.MinAge = &policy.Duration{Duration: 2 * time.Hour} },
			sandboxes: []string{"s2"}, want: decision{reaper.Held, reaper.TooYoung, "it is too young until 2026-03-01T13:00:00Z"}},
		{name: "it is as old as a sandbox can be that is being made", lease: func(a *reaper.Allocation) { a.Created = noon.Add(-10 * time.Minute) },
			sandboxes: []string{"s2"}, want: gone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := lease()
			if tt.lease != nil {
				tt.lease(&a)
			}
			s := situation{pools: []reaper.Pool{poolOf(a)}, pods: tt.pods, policy: tt.policy, sandboxes: tt.sandboxes}
			equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), tt.want)
		})
	}
}

// What an ADD left behind is leaked at once, and goes when it is older than an ADD can take.
func TestBlankLeaseWaitsForItsAge(t *testing.T) {
	a := lease()
	a.Owner, a.Blank, a.Created = reaper.Owner{}, true, noon.Add(-4*time.Minute)
	s := situation{pools: []reaper.Pool{poolOf(a)}, sandboxes: []string{"s2"}}
	s.policy = func(p *policy.Policy) { p.GracePeriod, p.MinAge = &policy.Duration{}, &policy.Duration{} }
	s.ledger = s.seen(t, noon)
	for at, want := range map[time.Duration]reaper.Verdict{
		0: reaper.Suspected, 6*time.Minute - time.Second: reaper.Suspected, 6 * time.Minute: reaper.Orphaned,
	} {
		equal(t, at.String(), s.judge(t, noon.Add(at))[0].Verdict, want)
	}
}

// Promise 1. Whose age is not known, or is in the future, waits as one that was just made.
func TestLeaseWithoutAnAgeIsYoung(t *testing.T) {
	for name, created := range map[string]time.Time{"unknown": {}, "in the future": noon.Add(24 * time.Hour)} {
		for _, blank := range []bool{false, true} {
			a := lease()
			a.Created, a.Blank = created, blank
			s := situation{pools: []reaper.Pool{poolOf(a)}, sandboxes: []string{"s2"}}
			s.policy = func(p *policy.Policy) { p.GracePeriod, p.MinAge = &policy.Duration{}, &policy.Duration{} }
			s.ledger = s.seen(t, noon)
			for at, want := range map[time.Duration]reaper.Verdict{
				0: reaper.Suspected, 10*time.Minute - time.Second: reaper.Suspected, 10*time.Minute + time.Second: reaper.Orphaned,
			} {
				equal(t, fmt.Sprint(name, " ", blank, " ", at), s.judge(t, noon.Add(at))[0].Verdict, want)
			}
		}
	}
}

// Promise 4. The second look lists the sandboxes again.
func TestSecondLookOnNodeListsTheSandboxes(t *testing.T) {
	for _, tt := range []struct {
		name string
		pods func(p *backendtest.Pods)
		want error
	}{
		{"the sandbox is still gone", func(*backendtest.Pods) {}, nil},
		{"the sandbox is there", func(p *backendtest.Pods) { p.AddSandboxes(reaper.Sandbox{ID: "s1"}) }, reaper.ErrReturned},
		{"there is no sandbox any more", func(p *backendtest.Pods) { p.Remove(reaper.PodRef{}) }, reaper.ErrAgain},
		{"a pod shows the address", func(p *backendtest.Pods) { p.Add(showing(other, ip1)) }, reaper.ErrReturned},
		{"the runtime does not answer", func(p *backendtest.Pods) {
			p.OnCall(func(call string) error {
				if call == "list sandboxes" {
					return errors.New("no answer")
				}
				return nil
			})
		}, reaper.ErrAgain},
	} {
		for _, names := range []reaper.PodRef{{}, web} {
			t.Run(fmt.Sprintf("%s, it names %v", tt.name, names), func(t *testing.T) {
				a := lease()
				a.Owner.Pod = names
				s := situation{pools: []reaper.Pool{poolOf(a)}, sandboxes: []string{"s2"}}
				s.policy = func(p *policy.Policy) { p.GracePeriod = &policy.Duration{} }
				orphans := reaper.MakePlan(s.judge(t, noon)).Orphans()
				equal(t, "orphans", len(orphans), 1)
				pods := &backendtest.Pods{}
				pods.AddSandboxes(reaper.Sandbox{ID: "s2"})
				tt.pods(pods)
				ws, errs := reaper.NewConfirmer(backendtest.OnNode(pods), censusOf().WithSandboxes("s2"), 1).Confirm(t.Context(), orphans)
				if tt.want != nil {
					refused(t, ws[0], errs[0], tt.want)
				} else if _, err := ws[0].Allocation(); errs[0] != nil || err != nil {
					t.Errorf("confirm: %v, %v, want a warrant", errs[0], err)
				}
			})
		}
	}
}
