package census_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

// What the tests of this package share with those of others, by short names.
var (
	noon, web, other, ip1, ip2 = reapertest.Noon, reapertest.Web, reapertest.Other, reapertest.IP1, reapertest.IP2

	showing  = reapertest.Showing
	finished = reapertest.Finished
)

// equal fails the test if two values differ.
func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// A failingCluster answers all requests but one.
type failingCluster struct {
	census.Runtime
	fails string
}

var errForbidden = errors.New("forbidden")

// answer returns an error if the list is the one that fails.
func (c failingCluster) answer(list string) error {
	if c.fails == list {
		return errForbidden
	}
	return nil
}

func (c failingCluster) Pods(context.Context) ([]census.Pod, error) { return nil, c.answer("pods") }

func (c failingCluster) VirtualMachines(context.Context) ([]census.VirtualMachine, error) {
	return nil, c.answer("virtualmachineinstances")
}

func (c failingCluster) StatefulSets(context.Context) ([]census.StatefulSet, error) {
	return nil, c.answer("statefulsets")
}

func (c failingCluster) Nodes(context.Context) ([]census.Node, error) { return nil, c.answer("nodes") }

func (c failingCluster) Sandboxes(context.Context) ([]census.Sandbox, error) {
	return nil, c.answer("the sandboxes of the container runtime")
}

func (failingCluster) Boot() string { return "" }

func (failingCluster) Unclaimed() string { return "" }

// Promise 2. There is no census without one of its lists, and a list that is not in the scope is not
// read.
func TestCensusNeedsEveryListOfItsScope(t *testing.T) {
	everything := census.Scope{StatefulSets: true, Nodes: true}
	for list, narrow := range map[string]census.Scope{
		"pods": {}, "virtualmachineinstances": {}, "the sandboxes of the container runtime": {},
		"statefulsets": {StatefulSets: true}, "nodes": {Nodes: true},
	} {
		for _, scope := range []census.Scope{everything, narrow} {
			c, err := census.Take(t.Context(), failingCluster{fails: list}, scope)
			if !errors.Is(err, errForbidden) || err.Error() != "list "+list+": forbidden" || !c.Began().IsZero() {
				t.Errorf("without the list of %s: %v, begun at %v", list, err, c.Began())
			}
		}
		if narrow == (census.Scope{}) {
			continue
		}
		outside := census.Scope{StatefulSets: !narrow.StatefulSets, Nodes: !narrow.Nodes}
		c, err := census.Take(t.Context(), failingCluster{fails: list}, outside)
		equal(t, "error of a list that is not read", err, nil)
		equal(t, "nodes were read", c.ReadsNodes(), outside.Nodes)
	}
}

// Promise 3. A census is as old as the beginning of its first request, because the answer may be
// that old.
func TestCensusBeginsBeforeItsFirstRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		slow := slowCluster{reapertest.Lists{Pods: []census.Pod{{Ref: web}}}.Cluster()}
		c, err := census.Take(t.Context(), slow, census.Scope{})
		equal(t, "error", err, nil)
		equal(t, "begun", c.Began(), began)
		began = time.Now()
		if c, err = c.Again(t.Context(), slow); err != nil {
			t.Fatal(err)
		}
		equal(t, "begun again", c.Began(), began)
	})
}

// A slowCluster takes a second for each list.
type slowCluster struct{ census.Cluster }

func (c slowCluster) Pods(ctx context.Context) ([]census.Pod, error) {
	time.Sleep(time.Second)
	return c.Cluster.Pods(ctx)
}

func (c slowCluster) VirtualMachines(ctx context.Context) ([]census.VirtualMachine, error) {
	time.Sleep(time.Second)
	return c.Cluster.VirtualMachines(ctx)
}

func (c slowCluster) StatefulSets(ctx context.Context) ([]census.StatefulSet, error) {
	time.Sleep(time.Second)
	return c.Cluster.StatefulSets(ctx)
}

func (c slowCluster) Nodes(ctx context.Context) ([]census.Node, error) {
	time.Sleep(time.Second)
	return c.Cluster.Nodes(ctx)
}

func TestCensusWaitsForTwoAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := census.Take(t.Context(), slowCluster{reapertest.Lists{}.Cluster()}, census.Scope{StatefulSets: true, Nodes: true})
		equal(t, "error", err, nil)
		equal(t, "duration", time.Since(began), 2*time.Second)
	})
}

// Promise 1. While the pods are listed, a pod ends, and the guest of a virtual machine has its address
// from then on. Or its node is lost, and the pod is deleted for that. Neither is missed.
func TestCensusSeesWhoTakesOverFromAPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := census.Take(t.Context(), handOver{reapertest.Lists{}.Cluster(), time.Now().Add(time.Second / 2)}, census.Scope{Nodes: true})
		equal(t, "error", err, nil)
		_, presence := c.Pod(web)
		equal(t, "pod", presence, census.Absent)
		equal(t, "claims", len(slices.Collect(c.On(ip1))), 1)
		equal(t, "node is unreachable", c.Unreachable("n1"), true)
	})
}

// A handOver is a cluster in which a pod ends while the pods are listed: after a moment, the list lacks it.
type handOver struct {
	census.Cluster
	at time.Time
}

func (h handOver) over() bool { return !time.Now().Before(h.at) }

func (h handOver) Pods(context.Context) ([]census.Pod, error) {
	time.Sleep(time.Second)
	if h.over() {
		return nil, nil
	}
	return []census.Pod{showing(web, ip1)}, nil
}

func (h handOver) VirtualMachines(context.Context) ([]census.VirtualMachine, error) {
	if !h.over() {
		return nil, nil
	}
	return []census.VirtualMachine{{Namespace: "v", Name: "a", Reported: true, Addresses: []netip.Addr{ip1}}}, nil
}

func (h handOver) Nodes(context.Context) ([]census.Node, error) {
	return []census.Node{{Name: "n1", Ready: !h.over()}}, nil
}

// Promise 2. Without lists, it is not known whether a pod exists.
func TestPodIsAbsentOnlyFromAList(t *testing.T) {
	read := time.Now()
	broken := errors.New("broken")
	listed := census.New(read, []census.Pod{{Ref: web, UID: "u"}}, nil)
	look := func(l census.Reading) census.Census {
		return listed.With(map[ipam.PodRef]census.Reading{web: l})
	}
	for _, tt := range []struct {
		name   string
		census census.Census
		uid    string
		want   census.Presence
	}{
		{"no list", census.Census{}, "", census.Unknown},
		{"it is in the list", listed, "u", census.Present},
		{"it is not in the list", census.New(read, []census.Pod{{Ref: other}}, nil), "", census.Absent},
		{"a look found another one", look(census.Reading{Pod: census.Pod{Ref: web, UID: "v"}, Presence: census.Present}), "v", census.Present},
		{"a look found none", look(census.Reading{Presence: census.Absent}), "", census.Absent},
		{"a look failed", look(census.Reading{Err: broken}), "", census.Unknown},
	} {
		pod, presence := tt.census.Pod(web)
		if presence != tt.want || pod.UID != tt.uid {
			t.Errorf("%s: %v %q, want %v %q", tt.name, presence, pod.UID, tt.want, tt.uid)
		}
	}
	at, err := look(census.Reading{Began: noon, Err: broken}).ReadAt(web)
	if !at.Equal(noon) || !errors.Is(err, broken) {
		t.Errorf("it was read at %v, %v; want the time and the error of the look", at, err)
	}
	at, err = look(census.Reading{}).ReadAt(other)
	if !at.Equal(read) || err != nil {
		t.Errorf("another one was read at %v, %v; want the time of the list", at, err)
	}
}

// Promise 1. A look replaces what the list says of the pod. One that failed replaces nothing.
func TestPodsThatShowAnAddress(t *testing.T) {
	listed := census.New(noon, []census.Pod{showing(web, ip1), showing(other, ip1, ip2)}, nil)
	look := func(p census.Presence, ips ...netip.Addr) census.Census {
		return listed.With(map[ipam.PodRef]census.Reading{other: {Pod: showing(other, ips...), Presence: p}})
	}
	for _, tt := range []struct {
		name   string
		census census.Census
		ip     netip.Addr
		want   []string
	}{
		{"in the list", listed, ip1, []string{"default/other", "default/web"}},
		{"one of them", listed, ip2, []string{"default/other"}},
		{"a look failed", look(census.Unknown), ip2, []string{"default/other"}},
		{"a look found none", look(census.Absent), ip2, nil},
		{"a look found it with another address", look(census.Present, ip1), ip2, nil},
		{"a look found it with both", look(census.Present, ip1, ip2), ip1, []string{"default/other", "default/web"}},
		{"the zero census", census.Census{}, ip1, nil},
	} {
		var got []string
		for claim := range tt.census.On(tt.ip) {
			got = append(got, claim.By.Ref.String())
		}
		slices.Sort(got)
		equal(t, tt.name, got, tt.want)
		for range tt.census.On(tt.ip) {
			break // a caller may stop at the first
		}
	}
}

// Promise 2. A pod that is starting on a ready node shows its address as soon as it has one. Any other
// that does not show all its addresses may have any.
func TestPodsThatMayHideAnAddress(t *testing.T) {
	starting := func(node string) census.Pod {
		return census.Pod{Ref: other, Node: node, AddressUnknown: true, Starting: true}
	}
	veiled := census.Pod{Ref: web, InStatus: 1, Addresses: []netip.Addr{ip1}, LeavesOut: true}
	for _, tt := range []struct {
		name   string
		pods   []census.Pod
		hiding int
		starts bool
		veiled []ipam.PodRef
	}{
		{"they show all", []census.Pod{showing(web, ip1)}, 0, false, nil},
		{"its address is unknown", []census.Pod{{Ref: web, AddressUnknown: true}}, 1, false, nil},
		{"it leaves out a network", []census.Pod{{Ref: web, LeavesOut: true}}, 1, false, nil},
		{"its annotations hide an address", []census.Pod{veiled}, 1, false, []ipam.PodRef{web}},
		{"it has ended", []census.Pod{finished(veiled)}, 0, false, nil},
		{"it starts on a ready node", []census.Pod{starting("n1")}, 0, true, nil},
		{"two start on a node that is not ready", []census.Pod{starting("n2"), starting("n2")}, 2, true, nil},
		{"it starts on a node that is gone", []census.Pod{starting("n3"), {Ref: web, AddressUnknown: true}}, 2, true, nil},
		{"it starts, and shows an address", []census.Pod{{Ref: web, Node: "n2", Starting: true}}, 0, false, nil},
	} {
		c := census.New(noon, tt.pods, nil, census.Node{Name: "n1", Ready: true}, census.Node{Name: "n2"})
		equal(t, "hiding: "+tt.name, c.Hiding(), tt.hiding)
		equal(t, "starting: "+tt.name, c.Starting(), tt.starts)
		equal(t, "veiled: "+tt.name, c.Veiled(), tt.veiled)
	}
}

// Only the kubelet writes the status. Annotations are the claims of the pod's owner.
func TestStatusProvesAnAddressAndAnnotationsDoNot(t *testing.T) {
	pod := showing(web, ip1, ip2)
	pod.InStatus = 1
	equal(t, "shown", [2]bool{pod.Shows(ip1), pod.Shows(ip2)}, [2]bool{true, true})
	equal(t, "proved", [2]bool{pod.Proves(ip1), pod.Proves(ip2)}, [2]bool{true, false})
}

// The first pod of the list that shows a sandbox stands for it.
func TestPodThatShowsASandbox(t *testing.T) {
	c := census.New(noon, []census.Pod{{Ref: web, Sandbox: "s1"}, {Ref: other, Sandbox: "s1"}, {Ref: ipam.PodRef{Name: "x"}}}, nil)
	pod, found := c.InSandbox("s1")
	equal(t, "pod", pod, web)
	equal(t, "found", found, true)
	for _, id := range []string{"s2", ""} {
		pod, found = c.InSandbox(id)
		equal(t, "pod of "+id, pod, ipam.PodRef{})
		equal(t, "found of "+id, found, false)
	}
}

// Promise 1. What counts on a node are its sandboxes, and elsewhere the pods that are not finished.
func TestFiguresOfACensus(t *testing.T) {
	pods := []census.Pod{{Ref: web}, finished(census.Pod{Ref: other})}
	nodes := []census.Node{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}}
	for _, tt := range []struct {
		name    string
		lists   reapertest.Lists
		figures census.Figures
		empty   bool
		found   string
		limit   string
		counted string
	}{
		{"a cluster", reapertest.Lists{Pods: pods, Nodes: nodes}, census.Figures{Pods: 1, Nodes: 3}, false, "2 pods", census.NoPods, "unfinished pods"},
		{"a cluster whose pods have ended", reapertest.Lists{Pods: pods[1:]}, census.Figures{}, false, "1 pods", census.NoPods, "unfinished pods"},
		{"an empty cluster", reapertest.Lists{}, census.Figures{}, true, "0 pods", census.NoPods, "unfinished pods"},
		{"a node", reapertest.Lists{Pods: pods, Nodes: nodes, Sandboxes: []string{"s1", "s2", "s3", "s4"}}, census.Figures{Pods: 4}, false,
			"4 sandboxes and 2 pods", census.NoSandboxes, "sandboxes"},
		{"a node without sandboxes", reapertest.Lists{Pods: pods, Sandboxes: []string{}}, census.Figures{}, true,
			"0 sandboxes and 2 pods", census.NoSandboxes, "sandboxes"},
	} {
		c := tt.lists.Census(t, census.Scope{Nodes: true})
		equal(t, "figures of "+tt.name, c.Figures(), tt.figures)
		equal(t, "empty: "+tt.name, c.IsEmpty(), tt.empty)
		equal(t, "found in "+tt.name, c.Found(), tt.found)
		equal(t, "limit of "+tt.name, c.Words().Empty, tt.limit)
		equal(t, "what counts in "+tt.name, c.Words().Counted, tt.counted)
		equal(t, "on a node: "+tt.name, c.OnNode(), tt.lists.Sandboxes != nil)
	}
}

// Promise 1, 2. A second list that has become empty is not believed.
func TestListThatBecameEmptyIsNotBelieved(t *testing.T) {
	pods := []census.Pod{{Ref: web}, {Ref: other}}
	cluster := func(pods []census.Pod, sandboxes ...string) reapertest.Lists {
		return reapertest.Lists{Pods: pods, Sandboxes: sandboxes}
	}
	none := []string{}
	for _, tt := range []struct {
		name        string
		first, next reapertest.Lists
		want        string // the error; empty if it is believed
	}{
		{"the pods stay", cluster(pods), cluster(pods), ""},
		{"one is left", cluster(pods), cluster(pods[:1]), ""},
		{"none is left", cluster(pods), cluster(nil), "not decided: now the cluster has no pods, and it had 2"},
		{"there was none", cluster(nil), cluster(nil), ""},
		{"a sandbox is left", cluster(pods, "s1", "s2"), cluster(pods, "s2"), ""},
		{"no sandbox is left", cluster(pods, "s1", "s2"), cluster(pods, none...), "not decided: now the container runtime has no sandboxes, and it had 2"},
		{"there was no sandbox", cluster(pods, none...), cluster(pods, none...), ""},
	} {
		c := tt.first.Census(t, census.Scope{}).With(map[ipam.PodRef]census.Reading{web: {}})
		c, err := c.Again(t.Context(), tt.next.Cluster())
		if tt.want != "" {
			if !errors.Is(err, ipam.ErrAgain) || err.Error() != tt.want {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
			}
			continue
		}
		equal(t, "error: "+tt.name, err, nil)
		equal(t, "pods: "+tt.name, c.Size(), len(tt.next.Pods))
		equal(t, "the first sandbox: "+tt.name, c.Sandbox("s1").ID, "")
		if _, presence := c.Pod(web); presence == census.Unknown {
			t.Errorf("%s: the look before the list still counts", tt.name)
		}
	}
	for _, list := range []string{"pods", "the sandboxes of the container runtime"} {
		if _, err := (census.Census{}).Again(t.Context(), failingCluster{fails: list}); !errors.Is(err, errForbidden) {
			t.Errorf("a list of %s that fails: %v", list, err)
		}
	}
}

// Promise 1. A store may cut off the ID of a sandbox.
func TestSandboxIsFoundByTheBeginningOfItsID(t *testing.T) {
	c := reapertest.Lists{Sandboxes: []string{"c", "abc", "abf", "abd"}, Stopped: []string{"abc", "abf", "c"}}.Census(t, census.Scope{})
	for id, want := range map[string]string{"abc": "abc", "ab": "abd", "abd": "abd", "c": "c", "abcd": "", "b": "", "d": "", "abe": ""} {
		equal(t, "sandbox "+id, c.Sandbox(id).ID, want)
	}
}

// Promise 1, 2. What was not read may be the address of anything that names a pod of that namespace, or
// none.
func TestWhatShowsTooMuchIsNamedByItsNamespace(t *testing.T) {
	crowded := func(namespace, name string) census.Pod {
		return census.Pod{Ref: ipam.PodRef{Namespace: namespace, Name: name}, TooMuch: true}
	}
	lists := reapertest.Lists{
		Pods: []census.Pod{crowded("x", "b"), crowded("x", "a"), crowded("w", "c"), finished(crowded("v", "e")), finished(crowded("v", "d")), {Ref: web}},
		Machines: []census.VirtualMachine{
			{Namespace: "x", Name: "vm", TooMuch: true}, {Namespace: "z", Name: "vm", TooMuch: true}, {Namespace: "q", Name: "vm"},
		},
	}
	c := lists.Census(t, census.Scope{})
	for namespace, want := range map[string]string{"x": "pod x/a", "w": "pod w/c", "z": "virtual machine z/vm", "v": "", "q": "", "": "pod w/c"} {
		equal(t, "first of "+namespace, c.ShowingTooMuch(namespace), want)
	}
	equal(t, "first that has ended", c.EndedShowingTooMuch(), "pod v/d")
	all := []string{"pod x/b", "pod x/a", "pod w/c", "virtual machine x/vm", "virtual machine z/vm"}
	equal(t, "all", c.AllShowingTooMuch(false), all)
	equal(t, "all, with those that have ended", c.AllShowingTooMuch(true), append(all, "pod v/e", "pod v/d"))
}

// Promise 1. The pods of a virtual machine have names that the API server makes from its name.
func TestVirtualMachineOfAPod(t *testing.T) {
	db := census.VirtualMachine{Namespace: "default", Name: "db", Addresses: []netip.Addr{netip.MustParseAddr("::ffff:10.0.0.1")}, Created: noon}
	earlier, later, reported := db, db, db
	earlier.Created, later.Created = noon.Add(-time.Hour), noon.Add(time.Hour)
	reported.Name, reported.Reported = "cache", true
	c := reapertest.Lists{Machines: []census.VirtualMachine{db, earlier, later, reported}}.Census(t, census.Scope{})
	launcher := func(name string) ipam.PodRef { return ipam.PodRef{Namespace: "default", Name: name} }
	m, found := c.Launched(launcher("virt-launcher-db-x7k2p"))
	equal(t, "found", found, true)
	equal(t, "the eldest", m.Created, earlier.Created)
	for _, name := range []string{"virt-launcher-cache-x7k2p", "virt-launcher-db-2-x7k2p", "db", "x"} {
		_, found := c.Launched(launcher(name))
		equal(t, "found for "+name, found, false)
	}
}

// The nodes are known by their names.
func TestNodesOfACensus(t *testing.T) {
	c := census.New(noon, nil, nil, census.Node{Name: "n1"}, census.Node{Name: "n2"})
	equal(t, "nodes", slices.Sorted(c.Nodes()), []string{"n1", "n2"})
	equal(t, "a node", c.Node("n2").Name, "n2")
	equal(t, "has nodes", [2]bool{c.HasNodes(), census.New(noon, nil, nil).HasNodes()}, [2]bool{true, false})
}
