package whereabouts

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// overlappingJSON returns an overlapping reservation with a spec and annotations.
func overlappingJSON(name, spec, annotations string) string {
	return `{"metadata": {"namespace": "kube-system", "name": "` + name + `", "uid": "u4", "resourceVersion": "44",
		"creationTimestamp": "2026-03-01T12:00:00Z", "annotations": ` + annotations + `}, "spec": ` + spec + `}`
}

// overlappingPool decodes one overlapping reservation.
func overlappingPool(o object, pools []ipPool) ipam.Pool {
	u := unnamedPool(o)
	readName(&u, pools)
	return u
}

func TestOverlappingReservationsAreRead(t *testing.T) {
	pools := []ipPool{testPool(t, "2001", "db8::/64")}
	web := ipam.PodRef{Namespace: "default", Name: "web-0"}
	for _, tt := range []struct {
		name        string
		object      string // the object's name
		spec        string
		annotations string
		ip          string // empty: no address
		network     string
		owner       ipam.Owner
		interrupted bool
		unreadable  string // a part of the reason
	}{
		{"as the plugin writes it", "10.0.0.4", `{"podref":"default/web-0","ifname":"net1"}`, `{}`,
			"10.0.0.4", "-", ipam.Owner{Pod: web, Interface: "net1"}, false, ""},
		{"with a sandbox, as old versions wrote it", "10.0.0.4", `{"podref":"default/web-0","containerid":"c1"}`, `null`,
			"10.0.0.4", "-", ipam.Owner{Pod: web, Sandbox: "c1"}, false, ""},
		{"of a named network", "my-net-2-10.0.0.4", `{"podref":"default/web-0"}`, `{}`,
			"10.0.0.4", "my-net-2", ipam.Owner{Pod: web}, false, ""},
		{"a name that a pool determines", "2001-db8--2", `{"podref":"default/web-0"}`, `{}`,
			"db8::2", "2001", ipam.Owner{Pod: web}, false, ""},
		{"a name that proves no address", "fd00-a--2", `{"podref":"default/web-0"}`, `{}`,
			"", "", ipam.Owner{Pod: web}, false, "does not identify one address"},
		{"no owner", "10.0.0.4", `{}`, `{}`, "10.0.0.4", "-", ipam.Owner{}, false, ""},
		{"fields in another case", "10.0.0.4", `{"PodRef":"default/web-0"}`, `{}`, "10.0.0.4", "-", ipam.Owner{}, false, ""},
		{"odd owner, and a sandbox", "10.0.0.4", `{"podref":"web-0","containerid":"c1"}`, `{}`,
			"10.0.0.4", "-", ipam.Owner{Pod: ipam.PodRef{Name: "web-0"}}, false, ""},
		{"spec of a wrong type", "10.0.0.4", `[]`, `{}`, "10.0.0.4", "-", ipam.Owner{}, false, "spec"},

		{"a tombstone with the old spec beside it", "10.0.0.4", `{"podref":"_ip-reaper/_released","ifname":"net9"}`,
			`{"ip-reaper/spec":"{\"podref\":\"default/web-0\",\"ifname\":\"net1\",\"containerid\":\"c1\",\"later\":1}","more":"x"}`,
			"10.0.0.4", "-", ipam.Owner{Pod: web, Interface: "net1", Sandbox: "c1"}, true, ""},
		{"a tombstone whose old spec names no pod", "10.0.0.4", `{"podref":"_ip-reaper/_released"}`,
			`{"ip-reaper/spec":"{\"podref\":\"a/b/c\"}"}`, "10.0.0.4", "-", ipam.Owner{}, false, "ip-reaper/spec"},

		{"a tombstone that lost its owner", "10.0.0.4", `{"podref":"_ip-reaper/_released","containerid":"c1"}`, `{}`,
			"10.0.0.4", "-", ipam.Owner{}, false, "ip-reaper/spec"},
		{"an owner in the annotation, without a tombstone", "10.0.0.4", `{"podref":"default/web-0"}`,
			`{"ip-reaper/spec":"{\"podref\":\"default/web-9\"}"}`, "10.0.0.4", "-", ipam.Owner{Pod: web}, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var o object
			if err := kube.Decode([]byte(overlappingJSON(tt.object, tt.spec, tt.annotations)), &o); err != nil {
				t.Fatal(err)
			}
			pool := overlappingPool(o, pools)
			if len(pool.Allocations) != 1 {
				t.Fatalf("%d allocations, want 1", len(pool.Allocations))
			}
			if got, want := pool.Allocations[0].Token, token(o); got != want || !strings.HasPrefix(got, "u4/44/") {
				t.Errorf("token = %q, want %q", got, want)
			}
			pool.Allocations[0].Token = ""
			if got := pool.Allocations[0].Unreadable; !strings.Contains(got, tt.unreadable) || (got == "") != (tt.unreadable == "") {
				t.Errorf("Unreadable = %q, want %q in it", got, tt.unreadable)
			}
			pool.Allocations[0].Unreadable = ""
			want := ipam.Pool{
				Name:    "kube-system/" + tt.object,
				Network: tt.network,
				Allocations: []ipam.Allocation{{
					Key: tt.object, Owner: tt.owner, Interrupted: tt.interrupted,
					Created: time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC),
				}},
			}
			if tt.ip != "" {
				want.Allocations[0].IP = netip.MustParseAddr(tt.ip)
			}
			if diff := cmp.Diff(want, pool, comparePools, ofOtherTests); diff != "" {
				t.Errorf("overlappingPool (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverlappingWithoutSpecIsUnreadable(t *testing.T) {
	var o object
	if err := kube.Decode([]byte(`{"metadata": {"name": "10.0.0.4"}}`), &o); err != nil {
		t.Fatal(err)
	}
	if r := overlappingPool(o, nil).Allocations[0]; r.Unreadable == "" {
		t.Errorf("allocation = %+v, want it unreadable", r)
	}
}

// Pools of another namespace belong to another installation of the plugin.
func TestOverlappingNamesAreReadWithThePoolsOfTheNamespace(t *testing.T) {
	stored := `{"metadata": {"namespace": "NS", "name": "2001-db8---64"}, "spec": {"range": "db8::/64"}}`
	_, client := newAPI(t, map[string]http.HandlerFunc{
		"GET overlappingrangeipreservations": items(
			overlappingJSON("2001-db8--2", `{"podref":"default/web-0"}`, `{}`),
			`{"metadata": {"namespace": "kube-system", "name": "x", "annotations": []}}`,
			`{"metadata": {"namespace": "kube-system", "name": "lan-10.0.0.5", "annotations": []}}`,
			overlappingJSON("10.0.0.4", `{"podref":"default/web-0"}`, `{}`)),
		"GET ippools": first(
			items(`{"spec": 1}`, strings.Replace(stored, "NS", "kube-system", 1)),
			first(
				items(strings.Replace(stored, "NS", "other", 1)),
				items(`{"metadata": {"namespace": "kube-system", "name": "y"}, "spec": 1}`, strings.Replace(stored, "NS", "kube-system", 1)))),
	})
	list := func() []string {
		var got []string
		for pool, err := range NewOverlapping(client, Settings{}, atOnce).List(t.Context()) {
			var unreadable *ipam.PoolError
			switch {
			case errors.As(err, &unreadable):
				got = append(got, fmt.Sprintf("unreadable %s, which has %v", unreadable.Pool, unreadable.Range))
			case err != nil:
				t.Fatal(err)
			default:
				got = append(got, pool.Name+" is "+pool.Allocations[0].IP.String())
			}
		}
		return got
	}
	want := []string{"kube-system/2001-db8--2 is db8::2", "unreadable kube-system/x, which has invalid Prefix",
		"unreadable kube-system/lan-10.0.0.5, which has 10.0.0.5/32", "kube-system/10.0.0.4 is 10.0.0.4"}
	if diff := cmp.Diff(want, list()); diff != "" {
		t.Errorf("List (-want +got):\n%s", diff)
	}
	want[0] = "kube-system/2001-db8--2 is invalid IP"
	if diff := cmp.Diff(want, list()); diff != "" {
		t.Errorf("List beside the pools of another namespace (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, list()); diff != "" {
		t.Errorf("List beside a pool that cannot be decoded (-want +got):\n%s", diff)
	}
}

func TestOverlappingListStatuses(t *testing.T) {
	forbidden := refuse(apierrors.NewForbidden(overlappingResources, "", errors.New("no")))
	some := items(overlappingJSON("10.0.0.4", `{"podref":"default/web-0"}`, `{}`))
	for _, tt := range []struct {
		name                string
		overlappings, pools http.HandlerFunc
		want                int
		err                 bool
		notInstalled        bool
	}{
		{"both there", some, items(), 1, false, false},
		{"no overlapping reservations installed", plain(http.StatusNotFound), items(), 0, true, true},
		{"no pools installed", some, plain(http.StatusNotFound), 1, false, false},
		{"overlapping reservations forbidden", forbidden, items(), 0, true, false},
		{"pools forbidden", some, forbidden, 0, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, client := newAPI(t, map[string]http.HandlerFunc{
				"GET overlappingrangeipreservations": tt.overlappings, "GET ippools": tt.pools})
			pools, failed, notInstalled := 0, false, false
			for _, err := range NewOverlapping(client, Settings{}, atOnce).List(t.Context()) {
				failed, notInstalled = failed || err != nil, errors.Is(err, ipam.ErrNotInstalled)
				if err == nil {
					pools++
				}
			}
			if pools != tt.want || failed != tt.err || notInstalled != tt.notInstalled {
				t.Errorf("List = %d pools, failed %v, not installed %v, want %d, %v, %v",
					pools, failed, notInstalled, tt.want, tt.err, tt.notInstalled)
			}
		})
	}
}

// Every overlapping reservation is exactly one allocation.
func FuzzReadOverlapping(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte, before, around string) {
		var o object
		if err := kube.Decode(data, &o); err != nil {
			return
		}
		var pools []ipPool
		if prefix, err := parseRange(around); err == nil {
			pools = append(pools, testPool(t, before, prefix.String()))
		}
		pool := overlappingPool(o, pools)
		if len(pool.Allocations) != 1 {
			t.Fatalf("%d allocations, want 1", len(pool.Allocations))
		}
		r := pool.Allocations[0]
		if want := o.Metadata.UID + "/" + o.Metadata.ResourceVersion + "/"; !strings.HasPrefix(r.Token, want) || r.Key != o.Metadata.Name {
			t.Errorf("key and token are %q and %q, want %q and %q first", r.Key, r.Token, o.Metadata.Name, want)
		}
		if r.Unreadable == "" {
			back := pluginName(pool.Network, r.IP)
			if pool.Network == unnamed && r.Key != back {
				back = pluginName("", r.IP)
			}
			if back != r.Key {
				t.Errorf("%q is read as %v in %q, which the plugin would name %q", r.Key, r.IP, pool.Network, back)
			}
		}
		var spec struct {
			PodRef json.RawMessage `json:"podref"`
		}
		withTombstone := kube.Decode(o.Spec, &spec) == nil && string(spec.PodRef) == `"`+tombstone+`"`
		if r.Interrupted && (!withTombstone || r.Owner.Pod.Namespace == "" || r.Owner.Pod.Name == "") {
			t.Errorf("%+v is Interrupted, with the spec %s", r, o.Spec)
		}
	})
}

// Promise 2. A reservation that is not gone yet takes the address.
func TestReservationThatFinalizersKeep(t *testing.T) {
	for _, object := range []string{leaked, withTombstone} {
		a := readReservation(json.RawMessage(beingDeleted(object))).Allocations[0]
		const want = "it is being deleted, and waits for the finalizers example.com/hold"
		if a.Deleting != want || a.Owner.Pod.Name != "web-0" {
			t.Errorf("it is listed as %q of %s, want %s", a.Deleting, a.Owner.Pod, want)
		}
	}
}
