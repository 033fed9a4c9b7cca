package azurecns

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/azurecns/cnstest"
	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The IDs of two containers that differ in the first 8 characters.
var (
	deadID = "dead0000" + strings.Repeat("0", 56)
	liveID = "11fe0000" + strings.Repeat("0", 56)
)

// entry returns the JSON of an address that belongs to a container.
func entry(id, ip, container string, more ...string) string {
	return ownedEntry(id, ip, fmt.Sprintf(`"podName":"web-0","podNamespace":"shop","PodInfraContainerID":%q,"PodInterfaceID":%q,"Version":2,"SecondaryInterfaceSet":false`,
		container, container[:8]+"-eth0"), more...)
}

// ownedEntry returns the JSON of an assigned address with these fields of its owner.
func ownedEntry(id, ip, owner string, more ...string) string {
	return fmt.Sprintf(`{"state":"Assigned","ID":%q,"IPAddress":%q,"LastStateTransition":"2026-11-20T10:00:00.5Z","NCID":"nc","PodInfo":{%s}%s}`,
		id, ip, owner, strings.Join(more, ""))
}

// stateOf returns the state of CNS with these addresses and keys.
func stateOf(t *testing.T, keys map[string][]string, entries ...string) *state {
	t.Helper()
	addresses := make(map[string]json.RawMessage)
	for _, e := range entries {
		var id struct{ ID string }
		if err := json.Unmarshal([]byte(e), &id); err != nil {
			t.Fatal(err)
		}
		addresses[id.ID] = json.RawMessage(e)
	}
	return newState(keys, addresses)
}

// Promise 2, 7. An address that does not plainly belong to one container is listed, with the
// reason why it is kept.
func TestWhatNamesNoContainerPlainlyIsHeld(t *testing.T) {
	owner := func(container, iface string, version int) string {
		return fmt.Sprintf(`"podName":"web-0","podNamespace":"shop","PodInfraContainerID":%q,"PodInterfaceID":%q,"Version":%d,"SecondaryInterfaceSet":false`, container, iface, version)
	}
	one := func(key string) map[string][]string { return map[string][]string{key: {"a"}} }
	both := map[string][]string{deadID: {"a", "b"}}
	for _, tt := range []struct {
		name    string
		keys    map[string][]string
		entries []string
		want    string // of the first address: what holds it, or the sandbox; empty for none
	}{
		{"a container by its ID", one(deadID), []string{entry("a", "10.0.0.4", deadID)}, deadID},
		{"a container by its interface", one("dead0000-eth0"), []string{ownedEntry("a", "10.0.0.4", owner(deadID, "dead0000-eth0", 1))}, deadID},
		{"an interface alone", one("dead0000-eth0"), []string{ownedEntry("a", "10.0.0.4", owner("", "dead0000-eth0", 1))}, "dead0000"},
		{"an interface that is the whole ID", one(deadID), []string{ownedEntry("a", "10.0.0.4", owner("", deadID, 1))}, deadID},
		{"a free address", nil, []string{`{"state":"Available","ID":"a","IPAddress":"10.0.0.4","PodInfo":null}`}, ""},
		{"two families", both, []string{entry("a", "10.0.0.4", deadID), entry("b", "fd00::4", deadID)}, deadID},

		{"PendingRelease", nil, []string{`{"state":"PendingRelease","ID":"a","IPAddress":"10.0.0.4","PodInfo":null}`}, "state in CNS is PendingRelease"},
		{"PendingRelease, since when", nil, []string{`{"state":"PendingRelease","ID":"a","IPAddress":"10.0.0.4","LastStateTransition":"2026-11-20T10:00:00.5Z","PodInfo":null}`},
			"state in CNS is PendingRelease since 2026-11-20T10:00:00Z, and CNS itself holds it"},
		{"a new state", nil, []string{`{"state":"Cooling","ID":"a","IPAddress":"10.0.0.4","PodInfo":null}`}, "state in CNS is Cooling"},
		{"no state", nil, []string{`{"ID":"a","IPAddress":"10.0.0.4","PodInfo":null}`}, "state in CNS is "},
		{"no owner", nil, []string{`{"state":"Assigned","ID":"a","IPAddress":"10.0.0.4","PodInfo":null}`}, "names no container"},
		{"a pod alone", one(""), []string{ownedEntry("a", "10.0.0.4", owner("", "", 1))}, "no key"},
		{"no ID of a container", one("898fb8f1-f93e"), []string{ownedEntry("a", "10.0.0.4", owner("898fb8f1-f93e", "898fb8f1-eth0", 2))}, "neither is a container ID"},
		{"an ID in capitals", one(strings.ToUpper(deadID)), []string{ownedEntry("a", "10.0.0.4", owner(strings.ToUpper(deadID), "", 2))}, "neither is a container ID"},
		{"an interface of another container", one(deadID), []string{ownedEntry("a", "10.0.0.4", owner(deadID, "11fe0000-eth0", 2))}, "which belongs to another one"},
		{"a new scheme", one(deadID), []string{ownedEntry("a", "10.0.0.4", owner(deadID, "", 3))}, "version 3"},
		{"no release frees it", nil, []string{entry("a", "10.0.0.4", deadID)}, "does not release it"},
		{"a release frees an unknown one too", both, []string{entry("a", "10.0.0.4", deadID)}, "together with b"},
		{"a release frees that of another container too", both, []string{entry("a", "10.0.0.4", deadID), entry("b", "10.0.0.5", liveID)}, "together with b"},
		{"a release frees a pending one too", both, []string{entry("a", "10.0.0.4", deadID), `{"state":"PendingRelease","ID":"b","IPAddress":"10.0.0.5"}`}, "together with b"},
		{"two containers behind one interface", map[string][]string{"dead0000-eth0": {"a", "b"}}, []string{
			ownedEntry("a", "10.0.0.4", owner(deadID, "dead0000-eth0", 1)),
			ownedEntry("b", "10.0.0.5", owner(deadID[:63]+"1", "dead0000-eth0", 1)),
		}, "together with b"},
		{"two keys free it", map[string][]string{deadID: {"a"}, liveID: {"a"}}, []string{entry("a", "10.0.0.4", deadID)}, "with two containers"},
		{"the address twice", both, []string{entry("a", "10.0.0.4", deadID), entry("b", "10.0.0.4", deadID)}, "more than once"},
		{"the address twice, once free", one(deadID), []string{entry("a", "10.0.0.4", deadID), `{"state":"Available","ID":"b","IPAddress":"10.0.0.4"}`}, "more than once"},
		{"no address", one(deadID), []string{entry("a", "10.0.0", deadID)}, "too short"},
		{"no time", one(deadID), []string{strings.Replace(entry("a", "10.0.0.4", deadID), "2026-11-20T10:00:00.5Z", "yesterday", 1)}, "yesterday"},
		{"an owner that is no object", one(deadID), []string{`{"state":"Assigned","ID":"a","IPAddress":"10.0.0.4","PodInfo":"web-0"}`}, "cannot unmarshal"},
		{"a new field", one(deadID), []string{entry("a", "10.0.0.4", deadID, `,"SharedWith":"b"`)}, "field PodIPConfigState.SharedWith"},
		{"a new field of the owner", one(deadID), []string{ownedEntry("a", "10.0.0.4", owner(deadID, "", 2)+`,"Shared":true`)}, "field PodIPConfigState.PodInfo.Shared"},
		{"a new field without a name", one(deadID), []string{entry("a", "10.0.0.4", deadID, `,"":"b"`)}, "field PodIPConfigState."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := stateOf(t, tt.keys, tt.entries...).pool(nil)
			got := ""
			if len(p.Allocations) > 0 {
				a := p.Allocations[0]
				if a.Token == "" {
					t.Error("it has no token")
				}
				got = a.Unreadable + a.Foreign + a.Protected
				if a.UnknownField != "" {
					got += "field " + a.UnknownField
				}
				if got == "" && a.ByRuntime && a.Group != "" {
					got = a.Owner.Sandbox
				}
			}
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("it is listed as %q, want %q", got, tt.want)
			}
		})
	}
}

// An ID other than the entry's would make a release name the wrong address.
func TestAddressUnderAnotherIDIsUnreadable(t *testing.T) {
	s := newState(map[string][]string{deadID: {"b"}}, map[string]json.RawMessage{"b": json.RawMessage(entry("a", "10.0.0.4", deadID))})
	if a := s.pool(nil).Allocations[0]; !strings.Contains(a.Unreadable, `its ID is "a"`) {
		t.Errorf("listed as %+v", a)
	}
}

// CNS says when an address was assigned. If it does not say, the address has no age.
func TestCreatedIsTheLastStateTransition(t *testing.T) {
	whole := entry("a", "10.0.0.4", deadID)
	for text, want := range map[string]time.Time{
		whole: time.Date(2026, 11, 20, 10, 0, 0, 500_000_000, time.UTC),
		strings.Replace(whole, "2026-11-20T10:00:00.5Z", "0001-01-01T00:00:00Z", 1):      {},
		strings.Replace(whole, `"LastStateTransition":"2026-11-20T10:00:00.5Z",`, "", 1): {},
	} {
		a := stateOf(t, map[string][]string{deadID: {"a"}}, text).pool(nil).Allocations[0]
		if !a.Created.Equal(want) || a.Unreadable != "" {
			t.Errorf("%s: created %v, want %v", text, a.Created, want)
		}
	}
}

// Promise 4. The token differs after any change of the address, or of what is freed with it.
func TestTokenCoversAllThatCNSShows(t *testing.T) {
	a, b := entry("a", "10.0.0.4", deadID), entry("b", "fd00::4", deadID)
	alone, both := map[string][]string{deadID: {"a"}}, map[string][]string{deadID: {"a", "b"}}
	tokens := make(map[string]bool)
	for _, s := range []*state{
		stateOf(t, alone, a),
		stateOf(t, both, a, b),
		stateOf(t, alone, strings.Replace(a, "web-0", "web-1", 1)),
		stateOf(t, alone, strings.Replace(a, "00.5Z", "00.6Z", 1)),
		stateOf(t, alone, strings.Replace(a, `"nc"`, `"cn"`, 1)),
		stateOf(t, alone, strings.Replace(a, "false", "true", 1)),
	} {
		tokens[s.pool(nil).Allocations[0].Token] = true
	}
	if len(tokens) != 6 {
		t.Errorf("6 states have %d tokens", len(tokens))
	}
	again := stateOf(t, map[string][]string{deadID: {"b", "a"}}, a, b).pool(nil).Allocations[0].Token
	if again != stateOf(t, both, a, b).pool(nil).Allocations[0].Token {
		t.Error("the token depends on the order in which CNS names the addresses of a container")
	}
}

// The pool shows how many addresses CNS has, and their range.
func TestPoolSpansTheAddresses(t *testing.T) {
	free := func(ip string) string { return fmt.Sprintf(`{"state":"Available","ID":%q,"IPAddress":%q}`, ip, ip) }
	for _, tt := range []struct {
		ips  []string
		want string
	}{
		{nil, "invalid Prefix 0"},
		{[]string{"10.0.0.4"}, "10.0.0.4/32 1"},
		{[]string{"10.0.0.4", "10.0.0.7", "10.0.0.5"}, "10.0.0.4/30 3"},
		{[]string{"fd00::1", "10.0.1.1", "fd00::2", "10.0.0.1"}, "10.0.0.0/23 4"},
		{[]string{"fd00::1", "fd00::2"}, "fd00::/126 2"},
		{[]string{"10.0.0.1", "192.168.0.1"}, "0.0.0.0/0 2"},
	} {
		var entries []string
		for _, ip := range tt.ips {
			entries = append(entries, free(ip))
		}
		p := stateOf(t, nil, entries...).pool(nil)
		if got := fmt.Sprint(p.Range, " ", p.Capacity); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.ips, got, tt.want)
		}
	}
}

// Promise 1. The first 8 characters of an ID keep the address as long as any sandbox has them.
func TestShortIDIsKeptByAnySandboxThatBeginsSo(t *testing.T) {
	n := newNode(t, serve(t, cnstest.New()), false)
	reserve := func(iface string) ipam.Allocation {
		t.Helper()
		a := assignment{Interface: iface, Pod: pod{"web-0", "shop"}, Name: "eth0"}
		s, err := n.cns.state(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at := n.free(s, "a")
		a.Addresses = []string{at.IP}
		if err := n.cns.assign(t.Context(), pathRequest, a); err != nil {
			t.Fatal(err)
		}
		return ipam.Allocation{Pool: poolName, Key: at.IP}
	}
	dead, live := reserve("dead0000-eth0"), reserve("11fe0000-eth0")
	var pods backendtest.Pods
	pods.AddSandboxes(census.Sandbox{ID: liveID}, census.Sandbox{ID: liveID[:63] + "1"})
	orphans, _ := backendtest.Orphans(t, n.Backend(), backendtest.OnNode(&pods))
	var got []string
	for place := range orphans {
		got = append(got, place)
	}
	if diff := cmp.Diff([]string{backendtest.Place(dead)}, got); diff != "" {
		t.Errorf("orphans beside %s (-want +got):\n%s", live.Key, diff)
	}
	errs := n.Backend().Release(t.Context(), backendtest.Warrants(t, n.Backend(), backendtest.OnNode(&pods), dead))
	if errs[0] != nil {
		t.Error(errs[0])
	}
	if left, err := n.Snapshot(); len(left) != 1 || err != nil {
		t.Errorf("left are %v, %v", left, err)
	}
}
