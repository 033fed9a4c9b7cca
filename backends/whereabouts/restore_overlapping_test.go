package whereabouts

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

const createAt = "POST namespaces/kube-system/overlappingrangeipreservations"

// storedORIP is a reservation as the API server sends it, with more metadata.
func storedORIP(podRef, metadata string) string {
	return `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"OverlappingRangeIPReservation","metadata":{
		"creationTimestamp":"2026-03-01T12:00:00Z","generation":2,"managedFields":[{"manager":"whereabouts"}],"name":"10.0.0.4",
		"namespace":"kube-system","resourceVersion":"44","uid":"u4"` + metadata + `},
		"spec":{"ifname":"net1","podref":"` + podRef + `","since":9007199254740993},"more":[1]}`
}

// oripRecord is its record.
func oripRecord(stored string) reaper.Record {
	return reaper.Record{Backend: OverlappingName, Pool: anORIP, Key: "10.0.0.4", IP: "10.0.0.4", Stored: json.RawMessage(stored)}
}

// wholeORIP is what is created of it.
const wholeORIP = `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"OverlappingRangeIPReservation",` +
	`"metadata":{%s"name":"10.0.0.4","namespace":"kube-system"},"more":[1],` +
	`"spec":{"ifname":"net1","podref":"default/web-0","since":9007199254740993}}`

func TestAllocationsAreRecordedAsTheyStand(t *testing.T) {
	stored := storedORIP("default/web-0", "")
	other := strings.Replace(stored, `"44"`, `"45"`, 1)
	listed := reaper.Allocation{Pool: anORIP, Key: "10.0.0.4", Token: "u4/44"}
	many := append(make([]reaper.Allocation, few), listed)
	forbidden := refuse(apierrors.NewForbidden(oripResources, "10.0.0.4", errors.New("no")))
	for _, tt := range []struct {
		name      string
		get, list http.HandlerFunc
		rs        []reaper.Allocation
		want      string // of the last
		fails     bool
	}{
		{"one", say(stored), nil, []reaper.Allocation{listed}, stored, false},
		{"one that was written", say(other), nil, []reaper.Allocation{listed}, "", false},
		{"one that is gone", notORIP, nil, []reaper.Allocation{listed}, "", false},
		{"one, at the second try", first(broken, say(stored)), nil, []reaper.Allocation{listed}, stored, false},
		{"one behind a proxy that knows no such path", plain(http.StatusNotFound), nil, []reaper.Allocation{listed}, "", true},
		{"one that may not be read", forbidden, nil, []reaper.Allocation{listed}, "", true},
		{"none", nil, nil, nil, "", false},
		{"many", nil, items(`{"metadata": []}`, stored), many, stored, false},
		{"many, and this one was written", nil, items(other), many, "", false},
		{"many, and this one is gone", nil, items(), many, "", false},
		{"many that may not be listed", nil, forbidden, many, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, client := newAPI(t, map[string]http.HandlerFunc{
				"GET overlappingrangeipreservations": tt.list, getAt: tt.get})
			got, err := NewOverlapping(client).Record(t.Context(), tt.rs)
			if (err != nil) != tt.fails {
				t.Fatalf("Record = %v, want an error: %v", err, tt.fails)
			}
			if tt.fails {
				return
			}
			if len(got) != len(tt.rs) {
				t.Fatalf("%d records, want %d", len(got), len(tt.rs))
			}
			for i, record := range got {
				want := ""
				if i == len(got)-1 {
					want = tt.want
				}
				if diff := cmp.Diff(want, string(record)); diff != "" {
					t.Errorf("record %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

func TestAllocationIsCreatedAgain(t *testing.T) {
	const mine = `"annotations":{"more":"x"},"finalizers":["f"],"labels":{"a":"b"},"ownerReferences":[{"uid":"u9"}],`
	for _, tt := range []struct{ name, stored, want string }{
		{"as the plugin writes it", storedORIP("default/web-0", ""), fmt.Sprintf(wholeORIP, "")},
		{"with what others wrote to it", storedORIP("default/web-0", `,`+strings.TrimSuffix(mine, ",")), fmt.Sprintf(wholeORIP, mine)},
		{"with a tombstone", storedORIP(tombstone, `,"annotations":{"ip-reaper/owner":"default/web-0"}`), fmt.Sprintf(wholeORIP, "")},
		{"with a tombstone beside others", storedORIP(tombstone, `,"annotations":{"ip-reaper/owner":"default/web-0","more":"x"}`),
			fmt.Sprintf(wholeORIP, `"annotations":{"more":"x"},`)},
		{"with an annotation that means nothing", storedORIP("default/web-0", `,"annotations":{"ip-reaper/owner":"default/web-9"}`),
			fmt.Sprintf(wholeORIP, `"annotations":{"ip-reaper/owner":"default/web-9"},`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, client := newAPI(t, map[string]http.HandlerFunc{createAt: say("{}")})
			errs := NewOverlapping(client).Restore(t.Context(), anORIP, []reaper.Record{oripRecord(tt.stored)})
			if got := outcomes(errs); got != "back" {
				t.Fatalf("Restore = %v, want it back", errs)
			}
			if diff := cmp.Diff([]string{createAt}, a.calls()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if body := a.bodies(createAt)[0].Body; !sameJSON(json.RawMessage(tt.want), json.RawMessage(body)) {
				t.Errorf("created\n%s\nwant\n%s", body, tt.want)
			}
		})
	}
}

func TestAllocationThatIsThere(t *testing.T) {
	exists := refuse(apierrors.NewAlreadyExists(oripResources, "10.0.0.4"))
	same, foreign := say(storedORIP("default/web-0", "")), say(storedORIP("default/web-9", ""))
	tomb := say(storedORIP(tombstone, `,"annotations":{"ip-reaper/owner":"default/web-0"}`))
	namespaces := schema.GroupResource{Resource: "namespaces"}
	for _, tt := range []struct {
		name             string
		post, get, patch http.HandlerFunc // nil: must not be asked
		want, says       string
	}{
		{"as it was", exists, same, nil, "present", ""},
		{"somebody else's", exists, foreign, nil, "taken", "by default/web-9"},
		{"the owner's, in another form", exists, say(orip("10.0.0.4", `{"podref":"default/web-0"}`, `{}`)), nil, "taken", "by default/web-0"},
		{"nobody's", exists, say(orip("10.0.0.4", `{}`, `{}`)), nil, "taken", "names no pod: {}"},
		{"with a tombstone of the owner", exists, tomb, same, "back", ""},
		{"with a tombstone of another", exists, say(storedORIP(tombstone, `,"annotations":{"ip-reaper/owner":"default/web-9"}`)),
			nil, "taken", "by default/web-9"},
		{"with a tombstone of nobody", exists, say(storedORIP(tombstone, "")), nil, "taken", ""},
		{"with a tombstone that somebody writes", exists, tomb, first(oripRV, same), "back", ""},
		{"with a tombstone that goes", first(exists, say("{}")), tomb, notORIP, "back", ""},
		{"with a tombstone, and the answer is lost", exists, first(tomb, same), broken, "back", ""},
		{"with a tombstone that may not be written", exists, tomb, oripNo, "final", ""},
		{"gone by the time it is read", first(exists, say("{}")), notORIP, nil, "back", ""},
		{"that may not be read", exists, oripNo, nil, "final", ""},
		{"that cannot be read for a moment", exists, first(broken, same), nil, "present", ""},

		{"not, and the answer is lost", first(broken, exists), same, nil, "back", ""},
		{"not, and the answer is lost, and somebody takes it", first(broken, exists), foreign, nil, "taken", "by default/web-9"},
		{"not, and nothing was written", first(broken, say("{}")), nil, nil, "back", ""},
		{"not, and it may not be created", oripNo, nil, nil, "final", ""},
		{"not, and its namespace is gone", refuse(apierrors.NewNotFound(namespaces, "kube-system")), nil, nil, "taken", "its namespace is gone"},
		{"not, and a proxy knows no such path", plain(http.StatusNotFound), nil, nil, "final", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, client := newAPI(t, map[string]http.HandlerFunc{createAt: tt.post, getAt: tt.get, patchAt: tt.patch})
			stored := storedORIP("default/web-0", "")
			errs := NewOverlapping(client).Restore(t.Context(), anORIP, []reaper.Record{oripRecord(stored)})
			if got := outcomes(errs); got != tt.want {
				t.Errorf("Restore = %s, want %s: %v", got, tt.want, errs)
			}
			if tt.says != "" && (errs[0] == nil || !strings.Contains(errs[0].Error(), tt.says)) {
				t.Errorf("Restore = %v, want %q in it", errs[0], tt.says)
			}
			for _, patch := range a.bodies(patchAt) {
				const want = `{"metadata":{"annotations":{"ip-reaper/owner":null},"resourceVersion":"44","uid":"u4"},"spec":{"podref":"default/web-0"}}`
				if diff := cmp.Diff(want, patch.Body); diff != "" {
					t.Errorf("patch (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestAllocationsThatCannotHaveBeenRecordedAreRefused(t *testing.T) {
	good := storedORIP("default/web-0", "")
	replaced := func(old, with string) reaper.Record {
		return oripRecord(strings.Replace(good, old, with, 1))
	}
	record := func(change func(*reaper.Record)) reaper.Record {
		r := oripRecord(good)
		change(&r)
		return r
	}
	for name, bad := range map[string]reaper.Record{
		"nothing":              oripRecord(""),
		"null":                 oripRecord("null"),
		"a list":               oripRecord("[]"),
		"no JSON":              oripRecord(good + "}"),
		"another kind":         replaced(`"OverlappingRangeIPReservation"`, `"IPPool"`),
		"another version":      replaced("v1alpha1", "v1"),
		"another name":         replaced(`"name":"10.0.0.4"`, `"name":"10.0.0.5"`),
		"another namespace":    replaced(`"namespace":"kube-system"`, `"namespace":"shop"`),
		"no pod":               replaced("default/web-0", ""),
		"half a pod":           replaced("default/web-0", "web-0"),
		"a lost tombstone":     replaced("default/web-0", tombstone),
		"a podref of a number": replaced(`"default/web-0"`, "4"),
		"no spec":              replaced(`"spec"`, `"Spec"`),
		"another address":      record(func(r *reaper.Record) { r.IP = "10.0.0.5" }),
		"no address":           record(func(r *reaper.Record) { r.IP = "" }),
		"another key":          record(func(r *reaper.Record) { r.Key = "10.0.0.5" }),
		"another backend":      record(func(r *reaper.Record) { r.Backend = PoolsName }),
		"another unit":         record(func(r *reaper.Record) { r.Pool = "kube-system/10.0.0.5" }),
	} {
		t.Run(name, func(t *testing.T) {
			a, client := newAPI(t, map[string]http.HandlerFunc{createAt: say("{}")})
			got := outcomes(NewOverlapping(client).Restore(t.Context(), anORIP, []reaper.Record{bad, oripRecord(good)}))
			if got != "final back" || len(a.calls()) != 1 {
				t.Errorf("Restore = %s after %s, want the good one back", got, a.calls())
			}
		})
	}
}

// Whatever a record says, what is created is the reservation of its address, names
// a pod, and is none that a run would take for half released.
func FuzzAllocationRecord(f *testing.F) {
	f.Add("10.0.0.4", "10.0.0.4", storedORIP("default/web-0", `,"labels":{"a":"b"}`))
	f.Add("10.0.0.4", "10.0.0.4", storedORIP(tombstone, `,"annotations":{"ip-reaper/owner":"default/web-0"}`))
	f.Fuzz(func(t *testing.T, key, ip, stored string) {
		r, err := readRecorded(reaper.Record{Backend: OverlappingName, Pool: "kube-system/" + key, Key: key, IP: ip, Stored: json.RawMessage(stored)})
		if err != nil {
			return
		}
		var o object
		if err := kube.Decode(r.body, &o); err != nil {
			t.Fatal(err)
		}
		entry := overlappingPool(o, nil).Allocations[0]
		if o.Metadata.Name != key || o.Metadata.UID != "" || o.Metadata.ResourceVersion != "" {
			t.Errorf("it becomes %s", r.body)
		}
		if entry.Interrupted || entry.Owner.Pod != r.owner || r.owner.Namespace == "" || r.owner.Name == "" || !sameJSON(o.Spec, r.spec) {
			t.Errorf("it is %v's, and becomes %s", r.owner, r.body)
		}
	})
}
