package judge_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

// lookAgain looks at the owner of an orphan as the second look of a run does: by name if it has
// one, and in a list if not. It returns the requests, and when the owner was looked at or why the
// orphan is kept. If silent is set, no pod can be read by name.
func lookAgain(t *testing.T, o judge.Orphan, first census.Census, now reapertest.Lists, silent bool) (calls []string, looked time.Time, err error) {
	t.Helper()
	cluster, living := now.Cluster(), first
	if o.NeedsList() {
		calls = append(calls, "list pods")
		if living, err = first.Again(t.Context(), cluster); err != nil {
			return calls, time.Time{}, err
		}
	}
	looks := make(map[ipam.PodRef]census.Reading)
	for ref := range judge.Owners([]judge.Orphan{o}) {
		calls = append(calls, "get pod "+ref.String())
		look := census.Reading{Began: time.Now(), Err: ipam.ErrAgain}
		if !silent {
			look.Pod, look.Presence, look.Err = cluster.Pod(t.Context(), ref)
		}
		looks[ref] = look
	}
	looked, err = judge.NewSecondLook(living.With(looks)).StillOrphaned(o)
	return calls, looked, err
}

// Promise 1, 2, 4. The second look asks the rules again, with the StatefulSets and nodes of the
// first one. Where a pod that the store does not name may matter, it lists all pods.
func TestSecondLookAsksTheRulesAgain(t *testing.T) {
	type lists = reapertest.Lists
	without := func(ref ipam.PodRef) func(*lists) {
		return func(l *lists) {
			l.Pods = slices.DeleteFunc(slices.Clone(l.Pods), func(p census.Pod) bool { return p.Ref == ref })
		}
	}
	add := func(ps ...census.Pod) func(*lists) {
		return func(l *lists) {
			for _, p := range ps {
				without(p.Ref)(l)
				l.Pods = append(l.Pods, p)
			}
		}
	}
	back := func(pod census.Pod) func(*lists) { // in place of web
		return func(l *lists) {
			without(web)(l)
			add(pod)(l)
		}
	}
	sandbox := func(ids ...string) func(*lists) { return func(l *lists) { l.Sandboxes = ids } }
	replace := func(situations func() (older, newer ipam.Allocation, pod census.Pod)) change {
		return func(s *situation) {
			older, newer, pod := situations()
			s.pools, s.pods = []ipam.Pool{poolOf(older, newer)}, []census.Pod{pod}
		}
	}
	handle := entry(func(a *ipam.Allocation) { *a = emptyHandle() })
	named := all(handle, owner(ipam.Owner{Pod: web, Sandbox: "s1"}))
	_, _, s2 := sandboxSituation()
	s1, forged := s2, s2
	s1.Sandbox, forged.Sandbox, forged.Addresses, forged.InStatus = "s1", "forged", nil, 0
	gone := all(func(s *situation) { s.pools = []ipam.Pool{poolOf(lease())} }, sandboxes("s2"))
	attached := func(as ...ipam.Attachment) func(*lists) { return func(l *lists) { l.Attachments = as } }
	goneOf := all(gone, entry(func(a *ipam.Allocation) { a.Owner.Pod = web }))
	moved := func(s *situation) {
		a, pod := movedSituation()
		s.pools, s.pods = []ipam.Pool{poolOf(a)}, []census.Pod{pod}
		s.nodes = []census.Node{{Name: "n1", OutOfService: true}, ready("n2")}
	}
	learned := func(s *situation) { // the node is that of its sibling
		a, sibling := webAllocation(), calicoOf("n1")
		a.Adoption, a.Owner.Sandbox = ipam.NeverAdopted, sibling.Owner.Sandbox
		s.pools, s.nodes = []ipam.Pool{poolOf(a, sibling)}, []census.Node{ready("n1"), ready("n2")}
	}
	ofUID := func(uid string) change { return entry(func(a *ipam.Allocation) { a.Owner.UID = uid }) }
	sandboxOnly := all(owner(ipam.Owner{Sandbox: "s1"}), terms(func(p *policy.Policy) { p.Pods.Unnamed = policy.Release }))
	hung := all(owner(ipam.Owner{Sandbox: "s1"}), nodes(ready("n1")), pods(starting("n1")), terms(func(p *policy.Policy) { p.Pods.Unnamed = policy.Release }))
	const list, get = "list pods", "get pod default/web"
	for _, tt := range []struct {
		name      string
		situation change
		between   change       // in the census of the first look
		now       func(*lists) // nil: it cannot be read
		calls     string       // for one that is due; empty if it does not matter
		want      error
	}{
		{"its pod is back", all(), nil, add(census.Pod{Ref: web}), get, ipam.ErrReturned},
		{"its pod is back and finished", all(), nil, add(census.Pod{Ref: web, Finished: true}), get, ipam.ErrKept},
		{"its pod is back with another UID", ofUID("old"), nil, add(census.Pod{Ref: web, UID: "new"}), get, ipam.ErrKept},
		{"its replaced pod is the one again", all(ofUID("old"), pods(census.Pod{Ref: web, UID: "new"})), nil, back(census.Pod{Ref: web, UID: "old"}), get, ipam.ErrReturned},
		{"its finished pod runs", all(pods(census.Pod{Ref: web, Finished: true}), terms(releaseAll)), nil, back(census.Pod{Ref: web}), get, ipam.ErrReturned},
		{"no answer", all(), nil, nil, get, ipam.ErrAgain},
		{"a sandbox, and a pod shows it", sandboxOnly, nil, add(census.Pod{Ref: other, Sandbox: "s1"}), list, ipam.ErrReturned},
		{"a sandbox, and a pod shows the address", sandboxOnly, nil, add(showing(other, ip1)), list, ipam.ErrReturned},
		{"a sandbox, and a pod does not show its addresses", sandboxOnly, nil, add(census.Pod{Ref: other, AddressUnknown: true}), list, ipam.ErrKept},
		{"an empty handle, and no pod has its sandbox", handle, nil, add(), list, nil},
		{"an empty handle, and a pod has its sandbox", handle, nil, add(census.Pod{Ref: other, Sandbox: "s1"}), list, ipam.ErrReturned},
		{"an empty handle of a pod that is absent", named, nil, add(), get, nil},
		{"an empty handle of a pod that is back", named, nil, add(census.Pod{Ref: web}), get, ipam.ErrReturned},
		{"an empty handle of a pod, and no answer", named, nil, nil, get, ipam.ErrAgain},
		{"the other sandbox", replace(sandboxSituation), nil, add(), "", nil},
		{"the other sandbox, whose pod is gone by now", replace(sandboxSituation), nil, without(web), "", nil},
		{"this sandbox", replace(sandboxSituation), nil, back(s1), "", ipam.ErrReturned},
		{"a sandbox that the store does not have", replace(sandboxSituation), nil, back(forged), "", ipam.ErrReturned},
		{"this sandbox's address", replace(sandboxSituation), nil, back(showing(web, ip1)), "", ipam.ErrReturned},
		{"a pod that moved", moved, nil, add(), get, nil},
		{"a pod that moved, and shows the address by now", moved, nil, back(showing(web, ip1)), get, ipam.ErrReturned},
		{"its pod is back on another node, and the store itself names none", learned, nil, add(census.Pod{Ref: web, Node: "n2"}), get, ipam.ErrReturned},
		{"a pod that hung, and shows the address by now", hung, nil, add(showing(other, ip1)), list, ipam.ErrReturned},
		{"a node was away", all(onNode1, nodes(ready("n1"))), nodes(notReady("n1")), add(), "", ipam.ErrKept},
		{"a node was away that its store means by the name of another", all(clone, nodes(ready("n1"), ready("n8"))), nodes(ready("n1"), notReady("n8")), add(), "", ipam.ErrKept},
		{"a StatefulSet brings it back", entry(func(a *ipam.Allocation) { a.Owner.Pod.Name = "db-0" }),
			sets(census.StatefulSet{Namespace: "default", Name: "db", Replicas: 1}), add(), "", ipam.ErrKept},
		{"on a node, the sandbox is still gone", gone, nil, add(), "", nil},
		{"on a node, the sandbox is there", gone, nil, sandbox("s2", "s1"), "", ipam.ErrReturned},
		{"on a node, the sandbox of a pod is there", goneOf, nil, sandbox("s2", "s1"), "", ipam.ErrReturned},
		{"on a node, there is no sandbox any more", gone, nil, sandbox([]string{}...), "", ipam.ErrAgain},
		{"on a node, another sandbox has the address", gone, nil, attached(eth0("s2", ip1)), "", ipam.ErrReturned},
		{"on a node, another sandbox may have the address", gone, nil, attached(vague("s2")), "", ipam.ErrKept},
		{"on a node, another sandbox has another address", gone, nil, attached(eth0("s2", ip2)), "", nil},
		{"on a node, a pod shows the address", gone, nil, add(showing(other, ip1)), "", ipam.ErrReturned},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := given(tt.situation, waits(0, 0))
			s.ledger = s.seen(t, noon)
			orphans := judge.MakePlan(s.judge(t, noon.Add(time.Hour))).Orphans()
			if len(orphans) == 0 {
				t.Fatal("it is no orphan at the first look")
			}
			if tt.between != nil {
				tt.between(&s)
			}
			now := s.lists()
			if tt.now != nil {
				tt.now(&now)
			}
			began := time.Now()
			calls, looked, err := lookAgain(t, orphans[0], s.census(t), now, tt.now == nil)
			if tt.calls != "" {
				equal(t, "calls", calls, []string{tt.calls})
			}
			if !errors.Is(err, tt.want) || err == nil && looked.Before(began) {
				t.Errorf("still orphaned: %v, looked at %v, want %v", err, looked, tt.want)
			}
		})
	}
}
