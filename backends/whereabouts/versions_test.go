package whereabouts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// recordedBy returns the pods of a recording, and the objects that the real plugin of a version
// stored for them.
func recordedBy(t *testing.T, version string) []ipam.Document {
	t.Helper()
	var all []ipam.Document
	for file, of := range map[string]ipam.Document{
		"pods": podDocument(""), "ippools": document(poolKind, ""), "overlappingrangeipreservations": document(overlappingKind, ""),
	} {
		data, err := os.ReadFile(filepath.Join("testdata", version, file+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Items []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(data, &list); err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			of.Data = item
			all = append(all, of)
		}
	}
	return all
}

func podDocument(data string) ipam.Document {
	return ipam.Document{APIVersion: "v1", Kind: "Pod", Data: []byte(data)}
}

// podOf returns a running pod of the namespace a with its first address, and with those on net1 as
// Multus shows them.
func podOf(name, first string, ips ...string) ipam.Document {
	shown, _ := json.Marshal([]map[string]any{{"name": "a/lan", "interface": "net1", "ips": ips}}) // texts always marshal
	return podDocument(fmt.Sprintf(`{"metadata": {"namespace": "a", "name": %q,
		"annotations": {"k8s.v1.cni.cncf.io/networks": "lan", "k8s.v1.cni.cncf.io/network-status": %q}},
		"spec": {"nodeName": "n1"}, "status": {"phase": "Running", "podIP": %q}}`, name, shown, first))
}

// reservationOf returns an overlapping reservation.
func reservationOf(name, spec string) ipam.Document {
	return document(overlappingKind, overlappingJSON(name, spec, `{}`))
}

// verdicts are allocations by verdict and reason, in any order: the name and the address of an
// entry's pool, or the name of a reservation.
type verdicts map[string][]string

const (
	kept = "inUse PodPresent"
	goes = "orphan PodAbsent"
)

// wantVerdicts judges what the documents hold, without a grace period.
func wantVerdicts(t *testing.T, documents []ipam.Document, unnamed policy.Disposition, want verdicts) {
	t.Helper()
	p := backendtest.Impatient()
	p.Pods.Unnamed = unnamed
	found, config := overFiles(t, p, append(slices.Clone(documents), wholeDump)...)
	client, err := kube.RawClient(config)
	if err != nil {
		t.Fatal(err)
	}
	cluster := state.NewCluster(corev1.NewForConfigOrDie(config), appsv1.NewForConfigOrDie(config), client)
	inv := ipam.TakeInventory(t.Context(), found, func(string) bool { return true })
	pods, err := census.Take(t.Context(), cluster, census.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	got := make(verdicts)
	for _, d := range judge.MakePlan(judge.Judge(time.Now(), p, inv, pods, ledger.Ledger{})).Decisions {
		name := strings.TrimPrefix(d.Allocation.Pool, "kube-system/")
		if d.Allocation.Backend == PoolsName {
			name += " " + d.Allocation.IP.String()
		}
		verdict := d.Verdict.String() + " " + string(d.Reason)
		got[verdict] = append(got[verdict], name)
	}
	for _, all := range []verdicts{want, got} {
		for _, of := range all {
			slices.Sort(of)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

// both returns an entry and the reservation of its ADD.
func both(pool, ip, reservation string) []string { return []string{pool + " " + ip, reservation} }

// live, left and again are what each recorded version stored for a/live, a/gone and a/again. The
// last one came back under its name.
func live() []string {
	return slices.Concat(both("10.1.0.0-24", "10.1.0.1", "10.1.0.1"), both("blue-10.2.0.0-24", "10.2.0.1", "blue-10.2.0.1"),
		both("fd00-1---64", "fd00:1::1", "fd00-1--1"))
}

func left() []string {
	return slices.Concat(both("10.1.0.0-24", "10.1.0.2", "10.1.0.2"), both("blue-2-10.2.0.0-24", "10.2.0.1", "blue-2-10.2.0.1"),
		both("fd00-1---64", "fd00:1::2", "fd00-1--2"))
}

var again = map[string][]string{
	"0.7.0": slices.Concat(both("10.1.0.0-24", "10.1.0.3", "10.1.0.3"), both("10.1.0.0-24", "10.1.0.4", "10.1.0.4")),
	"0.8.1": both("10.1.0.0-24", "10.1.0.3", "10.1.0.3"),
	"0.9.4": both("10.1.0.0-24", "10.1.0.3", "10.1.0.3"),
}

// What real plugins stored has no unknown fields. Each entry is one group with the reservation
// of its ADD, even in named networks and in IPv6. Only entries of a version before 0.8 are
// never adopted.
func TestStoresOfOtherVersions(t *testing.T) {
	for version, never := range map[string]bool{"0.7.0": true, "0.8.1": false, "0.9.4": false} {
		t.Run(version, func(t *testing.T) {
			found, _ := overFiles(t, policy.Default(), append(recordedBy(t, version), wholeDump)...)
			groups := make(map[string]int)
			for _, b := range found {
				for pool, err := range b.List(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					for _, a := range pool.Allocations {
						groups[a.Group]++
						if a.Unreadable+a.UnknownField+a.Protected != "" {
							t.Errorf("%s: %+v, want it readable and not protected", b.Name(), a)
						}
						if want := never && b.Name() == PoolsName; a.NeverAdopted() != want {
							t.Errorf("%s %s: NeverAdopted is %t, want %t", b.Name(), a.IP, a.NeverAdopted(), want)
						}
					}
				}
			}
			if len(groups) < 7 {
				t.Errorf("groups %v, want one for each of the addresses", groups)
			}
			for group, members := range groups {
				if group == "" || members != 2 {
					t.Errorf("group %q has %d members, want an entry and a reservation", group, members)
				}
			}
		})
	}
}

// Promise 1. Of what each version stored, exactly what the pod that is gone left behind goes. When
// the pod that came back is gone too, all goes that it left, including the entry and the reservation
// that version 0.7.0 leaked when it came back.
func TestVerdictsOnStoresOfOtherVersions(t *testing.T) {
	for version, again := range again {
		t.Run(version, func(t *testing.T) {
			documents := recordedBy(t, version)
			wantVerdicts(t, documents, policy.Hold, verdicts{kept: slices.Concat(live(), again), goes: left()})
			wantVerdicts(t, withoutAgain(documents), policy.Hold, verdicts{kept: live(), goes: slices.Concat(left(), again)})
		})
	}
}

// withoutAgain returns the documents without the pod a/again.
func withoutAgain(documents []ipam.Document) []ipam.Document {
	return slices.DeleteFunc(documents, func(d ipam.Document) bool {
		return d.Kind == "Pod" && strings.Contains(string(d.Data), `"name": "again"`)
	})
}

// The cluster is upgraded, and the pod gets one more sandbox. Today's plugin adopts no entry of
// 0.7.0, but makes another one. Then the two old entries are proved to be of earlier sandboxes. They
// stay with their reservations, which the pod could rely on again, until the pod is gone.
func TestPodThatComesBackAfterAnUpgrade(t *testing.T) {
	documents := append(withoutAgain(recordedBy(t, "0.7.0")),
		podOf("again", "10.9.0.1", "10.1.0.5"), reservationOf("10.1.0.5", `{"podref": "a/again", "ifname": "net1"}`))
	for i, d := range documents {
		if strings.Contains(string(d.Data), `"name": "10.1.0.0-24"`) {
			documents[i].Data = []byte(strings.Replace(string(d.Data), `"allocations": {`,
				`"allocations": {"5": {"id": "c5", "podref": "a/again", "ifname": "net1"},`, 1))
		}
	}
	wantVerdicts(t, documents, policy.Hold, verdicts{
		kept:               slices.Concat(live(), both("10.1.0.0-24", "10.1.0.5", "10.1.0.5"), []string{"10.1.0.3", "10.1.0.4"}),
		"held SiblingKept": {"10.1.0.0-24 10.1.0.3", "10.1.0.0-24 10.1.0.4"},
		goes:               left(),
	})
}

// These are written by hand, after the sources of Whereabouts v0.4.1, v0.5.4, v0.6, v0.6.2 and
// v0.6.3: no recording has them. Until 0.7, an entry has no interface, and a reservation has the
// sandbox. Until 0.4.1, an entry names a sandbox only. Until 0.5.4, it does so too if the runtime
// did not tell the plugin the pod.
func TestVerdictsOnFormsOfOldVersions(t *testing.T) {
	const live, gone, sandbox = `{"id":"a1","podref":"a/live"}`, `{"id":"a2","podref":"a/gone"}`, `{"id":"a3"}`
	const liveToo, goneToo, sandboxToo = `{"containerid":"a1","podref":"a/live"}`, `{"containerid":"a2","podref":"a/gone"}`, `{"containerid":"a3"}`
	pool := func(name, cidr, entries string) ipam.Document {
		return document(poolKind, poolJSON(name, cidr, entries))
	}
	mixed := []ipam.Document{
		pool("10.0.0.0-24", "10.0.0.0/24", `"1":`+live+`,"2":`+gone+`,"3":`+sandbox), podOf("live", "10.9.0.1", "10.0.0.1"),
		reservationOf("10.0.0.1", liveToo), reservationOf("10.0.0.2", goneToo), reservationOf("10.0.0.3", sandboxToo),
	}
	for _, tt := range []struct {
		name    string
		unnamed policy.Disposition
		stored  []ipam.Document
		want    verdicts
	}{
		{"0.4.1, sandboxes only", policy.Hold, []ipam.Document{
			pool("10.0.0.0-24", "10.0.0.0/24", `"1":`+sandbox+`,"2":{"id":"a4"}`), podOf("live", "10.9.0.1", "10.0.0.1"),
		}, verdicts{"inUse AddressInUse": {"10.0.0.0-24 10.0.0.1"}, "held OwnerUnknown": {"10.0.0.0-24 10.0.0.2"}}},
		{"0.5.4, with pods and without", policy.Hold, mixed, verdicts{
			kept: both("10.0.0.0-24", "10.0.0.1", "10.0.0.1"), goes: both("10.0.0.0-24", "10.0.0.2", "10.0.0.2"),
			"held OwnerUnknown": both("10.0.0.0-24", "10.0.0.3", "10.0.0.3"),
		}},
		// A reservation that names no pod is held under any policy.
		{"0.5.4, with pods and without, released by policy", policy.Release, mixed, verdicts{
			kept: both("10.0.0.0-24", "10.0.0.1", "10.0.0.1"), goes: both("10.0.0.0-24", "10.0.0.2", "10.0.0.2"),
			"orphan SandboxAbsent": {"10.0.0.0-24 10.0.0.3"}, "held OwnerUnknown": {"10.0.0.3"},
		}},
		// Before 0.6.1, the API server refused the name of a reservation that ends with colons.
		{"0.6, IPv6, and an address without a reservation", policy.Hold, []ipam.Document{
			pool("fd00-1-2-3---64", "fd00:1:2:3::/64", `"1":`+live+`,"2":`+gone+`,"1125899906842624":`+gone), podOf("live", "10.9.0.1", "fd00:1:2:3::1"),
			reservationOf("fd00-1-2-3--1", liveToo), reservationOf("fd00-1-2-3--2", goneToo),
		}, verdicts{
			kept: both("fd00-1-2-3---64", "fd00:1:2:3::1", "fd00-1-2-3--1"),
			goes: append(both("fd00-1-2-3---64", "fd00:1:2:3::2", "fd00-1-2-3--2"), "fd00-1-2-3---64 fd00:1:2:3:4::"),
		}},
		// The pool has the name of the network, and the reservation does not have it yet.
		{"0.6.2, a named network", policy.Hold, []ipam.Document{
			pool("blue-10.0.0.0-24", "10.0.0.0/24", `"1":`+live+`,"2":`+gone), podOf("live", "10.9.0.1", "10.0.0.1"),
			reservationOf("10.0.0.1", liveToo), reservationOf("10.0.0.2", goneToo),
		}, verdicts{
			kept: both("blue-10.0.0.0-24", "10.0.0.1", "10.0.0.1"), goes: both("blue-10.0.0.0-24", "10.0.0.2", "10.0.0.2"),
		}},
		// An entry without an interface, and one that names a sandbox only, are not stale for what
		// they lack (promise 2).
		{"of a pod that does not show its address", policy.Release, []ipam.Document{
			pool("10.0.0.0-24", "10.0.0.0/24", `"1":`+live+`,"2":`+sandbox), reservationOf("10.0.0.1", liveToo),
			podDocument(`{"metadata": {"namespace": "a", "name": "live", "annotations": {"k8s.v1.cni.cncf.io/networks": "lan"}},
				"spec": {"nodeName": "n1"}, "status": {"phase": "Running", "podIP": "10.9.0.1"}}`),
		}, verdicts{kept: both("10.0.0.0-24", "10.0.0.1", "10.0.0.1"), "held OwnerUnknown": {"10.0.0.0-24 10.0.0.2"}}},
		// Cilium and flannel show addresses in the status alone. Where a pool of Whereabouts overlaps
		// them, they are in use (promise 1).
		{"beside another network", policy.Hold, []ipam.Document{
			pool("10.244.0.0-16", "10.244.0.0/16", `"261":`+gone+`,"262":`+gone),
			podOf("live", "10.244.1.5", "10.1.0.1"),
		}, verdicts{"inUse AddressInUse": {"10.244.0.0-16 10.244.1.5"}, goes: {"10.244.0.0-16 10.244.1.6"}}},
	} {
		t.Run(tt.name, func(t *testing.T) { wantVerdicts(t, tt.stored, tt.unnamed, tt.want) })
	}
}
