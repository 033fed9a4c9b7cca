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

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

const createAt = "POST namespaces/kube-system/overlappingrangeipreservations"

// storedOverlapping is an overlapping reservation as the API server sends it, with
// more metadata.
func storedOverlapping(podRef, metadata string) string {
	return `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"OverlappingRangeIPReservation","metadata":{
		"creationTimestamp":"2026-03-01T12:00:00Z","generation":2,"managedFields":[{"manager":"whereabouts"}],"name":"10.0.0.4",
		"namespace":"kube-system","resourceVersion":"44","uid":"u4"` + metadata + `},
		"spec":{"ifname":"net1","podref":"` + podRef + `","since":9007199254740993},"more":[1]}`
}

// overlappingRecord is the record of a stored object.
func overlappingRecord(stored string) ipam.Record {
	return ipam.Record{Backend: OverlappingName, Pool: anOverlapping, Key: "10.0.0.4", IP: "10.0.0.4", Stored: json.RawMessage(stored)}
}

// tokenOf returns the token of a stored object.
func tokenOf(t *testing.T, stored string) string {
	t.Helper()
	var o object
	if err := kube.Decode([]byte(stored), &o); err != nil {
		t.Fatal(err)
	}
	return token(o)
}

// oldSpec is the annotation that keeps the spec of storedOverlapping.
func oldSpec(podRef string) string {
	return `"ip-reaper/spec":"{\"ifname\":\"net1\",\"podref\":\"` + podRef + `\",\"since\":9007199254740993}"`
}

// createdOverlapping is the object that Restore creates from the record.
const createdOverlapping = `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"OverlappingRangeIPReservation",` +
	`"metadata":{%s"name":"10.0.0.4","namespace":"kube-system"},"more":[1],` +
	`"spec":{"ifname":"net1","podref":"default/web-0","since":9007199254740993}}`

func TestOverlappingIsRecordedAsStored(t *testing.T) {
	stored := storedOverlapping("default/web-0", "")
	other := strings.Replace(stored, `"44"`, `"45"`, 1)
	listed := ipam.Allocation{Pool: anOverlapping, Key: "10.0.0.4", Token: tokenOf(t, stored)}
	many := append(make([]ipam.Allocation, maxSingleReads), listed)
	forbidden := refuse(apierrors.NewForbidden(overlappingResources, "10.0.0.4", errors.New("no")))
	for _, tt := range []struct {
		name      string
		get, list http.HandlerFunc
		rs        []ipam.Allocation
		want      string // the last record
		fails     bool
	}{
		{"one", say(stored), nil, []ipam.Allocation{listed}, stored, false},
		{"one that was changed", say(other), nil, []ipam.Allocation{listed}, "", false},
		{"one that is gone", overlappingNotFound, nil, []ipam.Allocation{listed}, "", false},
		{"one, at the second try", first(broken, say(stored)), nil, []ipam.Allocation{listed}, stored, false},
		{"one behind a proxy that knows no such path", plain(http.StatusNotFound), nil, []ipam.Allocation{listed}, "", true},
		{"one that may not be read", forbidden, nil, []ipam.Allocation{listed}, "", true},
		{"none", nil, nil, nil, "", false},
		{"many", nil, items(`{"metadata": []}`, stored), many, stored, false},
		{"many, and this one was changed", nil, items(other), many, "", false},
		{"many, and this one is gone", nil, items(), many, "", false},
		{"many that may not be listed", nil, forbidden, many, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, client := newAPI(t, map[string]http.HandlerFunc{
				"GET overlappingrangeipreservations": tt.list, getAt: tt.get})
			got, err := NewOverlapping(client, Settings{}, atOnce).Record(t.Context(), tt.rs)
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

func TestOverlappingIsCreatedAgain(t *testing.T) {
	const mine = `"annotations":{"more":"x"},"finalizers":["f"],"labels":{"a":"b"},"ownerReferences":[{"uid":"u9"}],`
	for _, tt := range []struct{ name, stored, want string }{
		{"as the plugin writes it", storedOverlapping("default/web-0", ""), fmt.Sprintf(createdOverlapping, "")},
		{"with metadata of other writers", storedOverlapping("default/web-0", `,`+strings.TrimSuffix(mine, ",")), fmt.Sprintf(createdOverlapping, mine)},
		{"with a tombstone", storedOverlapping(tombstone, `,"annotations":{`+oldSpec("default/web-0")+`}`), fmt.Sprintf(createdOverlapping, `"annotations":{},`)},
		{"with a tombstone beside others", storedOverlapping(tombstone, `,"annotations":{`+oldSpec("default/web-0")+`,"more":"x"}`),
			fmt.Sprintf(createdOverlapping, `"annotations":{"more":"x"},`)},
		{"with an annotation but no tombstone", storedOverlapping("default/web-0", `,"annotations":{"ip-reaper/spec":"x"}`),
			fmt.Sprintf(createdOverlapping, `"annotations":{"ip-reaper/spec":"x"},`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, client := newAPI(t, map[string]http.HandlerFunc{createAt: say("{}")})
			errs := NewOverlapping(client, Settings{}, atOnce).Restore(t.Context(), anOverlapping, []ipam.Record{overlappingRecord(tt.stored)}, backendtest.Permit)
			if got := restoreOutcomes(errs); got != "back" {
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

func TestRestoreOfAnExistingOverlapping(t *testing.T) {
	exists := refuse(apierrors.NewAlreadyExists(overlappingResources, "10.0.0.4"))
	same, foreign := say(storedOverlapping("default/web-0", "")), say(storedOverlapping("default/web-9", ""))
	tomb := say(storedOverlapping(tombstone, `,"annotations":{`+oldSpec("default/web-0")+`}`))
	namespaces := schema.GroupResource{Resource: "namespaces"}
	for _, tt := range []struct {
		name             string
		post, get, patch http.HandlerFunc // nil: a request fails the test
		want, says       string
	}{
		{"as it was", exists, same, nil, "present", ""},
		{"another pod's", exists, foreign, nil, "taken", "by default/web-9"},
		{"the owner's, in another form", exists, say(overlappingJSON("10.0.0.4", `{"podref":"default/web-0"}`, `{}`)), nil, "taken", "by default/web-0"},
		{"without an owner", exists, say(overlappingJSON("10.0.0.4", `{}`, `{}`)), nil, "taken", "names no pod: {}"},
		{"with a tombstone of the owner", exists, tomb, same, "back", ""},
		{"with a tombstone of another", exists, say(storedOverlapping(tombstone, `,"annotations":{`+oldSpec("default/web-9")+`}`)),
			nil, "taken", "by default/web-9"},
		{"with a tombstone that is changed meanwhile", exists, tomb, first(overlappingConflict, same), "again", ""},
		{"with a tombstone that is deleted meanwhile", first(exists, say("{}")), tomb, overlappingNotFound, "again", ""},
		{"with a tombstone, and the answer is lost", exists, first(tomb, same), broken, "lost", ""},
		{"with a tombstone that may not be written", exists, tomb, overlappingForbidden, "final", ""},
		{"with a tombstone that finalizers keep", exists, say(beingDeleted(storedOverlapping(tombstone, `,"annotations":{`+oldSpec("default/web-0")+`}`))),
			nil, "final", "waits for the finalizers example.com/hold: restore it once it is gone"},
		{"gone by the time it is read", first(exists, say("{}")), overlappingNotFound, nil, "again", ""},
		{"that cannot be read for a moment", exists, first(broken, same), nil, "again", ""},

		{"absent, and the answer is lost", first(broken, exists), same, nil, "lost", ""},
		{"absent, and it may not be created", overlappingForbidden, nil, nil, "final", ""},
		{"absent, and a webhook denies it", deny(403), nil, nil, "final", `"guard.example.com"`},
		{"absent, and a webhook denies it with a conflict", deny(409), nil, nil, "final", `"guard.example.com"`},
		{"absent, and a webhook denies it as broken", deny(500), nil, nil, "final", `"guard.example.com"`},
		{"absent, and its namespace is gone", refuse(apierrors.NewNotFound(namespaces, "kube-system")), nil, nil, "taken", "its namespace is gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, client := newAPI(t, map[string]http.HandlerFunc{createAt: tt.post, getAt: tt.get, patchAt: tt.patch})
			stored := storedOverlapping("default/web-0", "")
			errs := NewOverlapping(client, Settings{}, atOnce).Restore(t.Context(), anOverlapping, []ipam.Record{overlappingRecord(stored)}, backendtest.Permit)
			if got := restoreOutcomes(errs); got != tt.want {
				t.Errorf("Restore = %s, want %s: %v", got, tt.want, errs)
			}
			if tt.says != "" && (errs[0] == nil || !strings.Contains(errs[0].Error(), tt.says)) {
				t.Errorf("Restore = %v, want %q in it", errs[0], tt.says)
			}
			for _, patch := range a.bodies(patchAt) {
				want := strings.NewReplacer(`"45"`, `"44"`, `{"podref":"default/web-0"}`, `{"ifname":"net1","podref":"default/web-0","since":9007199254740993}`).Replace(restoreBody)
				if diff := cmp.Diff(want, patch.Body); diff != "" {
					t.Errorf("patch (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestBadOverlappingRecordsAreRefused(t *testing.T) {
	good := storedOverlapping("default/web-0", "")
	replaced := func(old, with string) ipam.Record {
		return overlappingRecord(strings.Replace(good, old, with, 1))
	}
	record := func(change func(*ipam.Record)) ipam.Record {
		r := overlappingRecord(good)
		change(&r)
		return r
	}
	for name, bad := range map[string]ipam.Record{
		"nothing":              overlappingRecord(""),
		"no JSON":              overlappingRecord(good + "}"),
		"another name":         replaced(`"name":"10.0.0.4"`, `"name":"10.0.0.5"`),
		"another namespace":    replaced(`"namespace":"kube-system"`, `"namespace":"shop"`),
		"no pod":               replaced("default/web-0", ""),
		"a lost tombstone":     replaced("default/web-0", tombstone),
		"a podref of a number": replaced(`"default/web-0"`, "4"),
		"another address":      record(func(r *ipam.Record) { r.IP = "10.0.0.5" }),
		"another key":          record(func(r *ipam.Record) { r.Key = "10.0.0.5" }),
		"another pool":         record(func(r *ipam.Record) { r.Pool = "kube-system/10.0.0.5" }),
	} {
		t.Run(name, func(t *testing.T) {
			a, client := newAPI(t, map[string]http.HandlerFunc{createAt: say("{}")})
			got := restoreOutcomes(NewOverlapping(client, Settings{}, atOnce).Restore(t.Context(), anOverlapping, []ipam.Record{bad, overlappingRecord(good)}, backendtest.Permit))
			if got != "final back" || len(a.calls()) != 1 {
				t.Errorf("Restore = %s after %s, want the good record back", got, a.calls())
			}
		})
	}
}
