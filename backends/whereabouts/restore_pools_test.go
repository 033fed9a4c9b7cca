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

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

const (
	entry4 = `{"id":"c4","ifname":"net1","podref":"default/web-0"}`
	entry5 = `{"id":"c5","podref":"default/web-1","since":9007199254740993}`
)

// reapedPool is leakyPool after a run, with more allocations.
func reapedPool(more string) string {
	return `{"metadata": {"namespace": "kube-system", "name": "10.0.0.0-24", "uid": "u1", "resourceVersion": "8"},
		"spec": {"range": "10.0.0.0/24", "allocations": {` + more + `"6": {"id":"c6","podref":"default/alive"}}}}`
}

// poolRecord is the record of an entry of that pool.
func poolRecord(key, stored string) ipam.Record {
	return ipam.Record{Backend: PoolsName, Pool: aPool, Key: key, IP: "10.0.0." + key, Stored: json.RawMessage(stored)}
}

// reaped are the records of that run.
var reaped = []ipam.Record{poolRecord("4", entry4), poolRecord("5", entry5)}

// restoreOutcomes returns the answers of Restore, in one word each.
func restoreOutcomes(errs []error) string {
	var all []string
	for _, err := range errs {
		switch {
		case err == nil:
			all = append(all, "back")
		case errors.Is(err, ipam.ErrPresent):
			all = append(all, "present")
		case errors.Is(err, ipam.ErrTaken):
			all = append(all, "taken")
		case errors.Is(err, ipam.ErrLost):
			all = append(all, "lost")
		case errors.Is(err, ipam.ErrAgain):
			all = append(all, "again")
		default:
			all = append(all, "final")
		}
	}
	return strings.Join(all, " ")
}

func TestEntriesAreTheirOwnRecords(t *testing.T) {
	_, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": items(leakyPool)})
	b := NewPools(client, Settings{}, atOnce)
	var got []string
	for pool, err := range b.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		records, err := b.Record(t.Context(), pool.Allocations)
		if err != nil || len(records) != len(pool.Allocations) {
			t.Fatalf("Record = %d records, %v, want %d", len(records), err, len(pool.Allocations))
		}
		for i, r := range pool.Allocations {
			got = append(got, r.Key+" "+string(records[i]))
		}
	}
	want := []string{`007 {"id":"c7","podref":"default/web-2"}`, "abc ", "4 " + entry4, "5 " + entry5, `6 {"id":"c6","podref":"default/alive"}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestRestoreIsOnePatchThatTestsTheVersion(t *testing.T) {
	const test = `[{"op":"test","path":"/metadata/resourceVersion","value":"8"},`
	const adds = `{"op":"add","path":"/spec/allocations/4","value":` + entry4 + `},` +
		`{"op":"add","path":"/spec/allocations/5","value":` + entry5 + `}]`
	for _, tt := range []struct{ name, pool, want string }{
		{"beside others", reapedPool(""), test + adds},
		{"into a pool without allocations", `{"metadata": {"resourceVersion": "8"}, "spec": {"range": "10.0.0.0/24"}}`,
			test + `{"op":"add","path":"/spec/allocations","value":{}},` + adds},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, client := newAPI(t, map[string]http.HandlerFunc{"GET " + poolAt: say(tt.pool), "PATCH " + poolAt: say(leakyPool)})
			if got := restoreOutcomes(NewPools(client, Settings{}, atOnce).Restore(t.Context(), aPool, reaped, backendtest.Permit)); got != "back back" {
				t.Errorf("Restore = %s, want both back", got)
			}
			if diff := cmp.Diff([]string{"GET " + poolAt, "PATCH " + poolAt}, a.calls()); diff != "" {
				t.Fatalf("requests (-want +got):\n%s", diff)
			}
			sent := a.bodies("PATCH " + poolAt)[0]
			if diff := cmp.Diff(tt.want, sent.Body); diff != "" || sent.Type != "application/json-patch+json" {
				t.Errorf("%s patch (-want +got):\n%s", sent.Type, diff)
			}
		})
	}
}

func TestRestoreAnswers(t *testing.T) {
	free := say(reapedPool(""))
	both := say(reapedPool(`"4":` + entry4 + `,"5":` + entry5 + `,`))
	notFound := refuse(apierrors.NewNotFound(poolResources, "10.0.0.0-24"))
	forbidden := refuse(apierrors.NewForbidden(poolResources, "10.0.0.0-24", errors.New("no")))
	for _, tt := range []struct {
		name  string
		get   http.HandlerFunc
		patch http.HandlerFunc // nil: a patch fails the test
		want  string
		says  string // a part of the first answer
	}{
		{"there already", both, nil, "present present", ""},
		{"there in another form", say(reapedPool(`"4": {"podref": "default/web-0", "ifname": "net1", "id": "c4"},
			"5": {"since":9007199254740993,"id":"c5","podref":"default\/web-1"},`)), nil, "present present", ""},
		{"adopted", say(reapedPool(`"4":{"id":"c9","podref":"default/web-0"},`)), say("{}"), "taken back", "by default/web-0"},
		{"given to an owner without a pod", say(reapedPool(`"4":{"id":"c9"},`)), say("{}"), "taken back", `names no pod: {"id":"c9"}`},
		{"held by an unreadable entry", say(reapedPool(`"4":"?",`)), say("{}"), "taken back", `"?"`},
		{"held by a key that the plugin reads as the same", say(reapedPool(`"004":{"id":"c9","podref":"default/alive"},`)), say("{}"), "taken back", "by default/alive"},
		{"a number that differs in its last digit", say(reapedPool(`"5":{"id":"c5","podref":"default/web-1","since":9007199254740992},`)),
			say("{}"), "back taken", ""},

		{"the pool is gone", notFound, nil, "taken taken", "the pool is gone"},
		{"a proxy knows no such path", plain(http.StatusNotFound), nil, "final final", ""},
		{"the range is another", say(strings.Replace(reapedPool(""), "10.0.0.0/24", "10.0.1.0/24", 1)), nil, "final final", "10.0.1.4"},
		{"reading fails for a moment", first(broken, free), say("{}"), "again again", ""},

		{"another writer changes the pool", free, refuse(failedTest()), "again again", "changed the pool"},
		{"the answer is lost", first(free, both), broken, "lost lost", ""},
		{"writing is forbidden", free, forbidden, "final final", ""},
		{"denied by a webhook", free, deny(403), "final final", `"guard.example.com"`},
		{"denied by a webhook, as invalid", free, deny(422), "final final", `"guard.example.com"`},
		{"gone between", free, notFound, "taken taken", "the pool is gone"},
		{"another entry breaks the schema", free, refuse(brokenSchema()), "final final", ""},
		{"one of the entries breaks the schema", free, refuse(brokenAt("4")), "final again", "refuses the entry"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, client := newAPI(t, map[string]http.HandlerFunc{"GET " + poolAt: tt.get})
			if tt.patch != nil {
				a.answer("PATCH "+poolAt, tt.patch)
			}
			errs := NewPools(client, Settings{}, atOnce).Restore(t.Context(), aPool, reaped, backendtest.Permit)
			if got := restoreOutcomes(errs); got != tt.want {
				t.Errorf("Restore = %s, want %s: %v", got, tt.want, errs)
			}
			if tt.says != "" && (errs[0] == nil || !strings.Contains(errs[0].Error(), tt.says)) {
				t.Errorf("Restore = %v, want %q in it", errs[0], tt.says)
			}
		})
	}
}

// Someone may have edited the journal.
func TestBadPoolRecordsAreRefused(t *testing.T) {
	with := func(change func(*ipam.Record)) ipam.Record {
		r := poolRecord("4", entry4)
		change(&r)
		return r
	}
	for name, bad := range map[string]ipam.Record{
		"another address":      with(func(r *ipam.Record) { r.IP = "10.0.0.9" }),
		"key with a zero":      with(func(r *ipam.Record) { r.Key = "04" }),
		"key with a path":      with(func(r *ipam.Record) { r.Key = "4/podref" }),
		"key out of range":     with(func(r *ipam.Record) { r.Key, r.IP = "256", "10.0.1.0" }),
		"nothing stored":       with(func(r *ipam.Record) { r.Stored = nil }),
		"null stored":          with(func(r *ipam.Record) { r.Stored = json.RawMessage("null") }),
		"a podref of a number": with(func(r *ipam.Record) { r.Stored = json.RawMessage(`{"id":"c4","podref":4}`) }),
		"the same key again":   poolRecord("5", entry5),
	} {
		t.Run(name, func(t *testing.T) {
			a, client := newAPI(t, map[string]http.HandlerFunc{"GET " + poolAt: say(reapedPool("")), "PATCH " + poolAt: say("{}")})
			if got := restoreOutcomes(NewPools(client, Settings{}, atOnce).Restore(t.Context(), aPool, []ipam.Record{reaped[1], bad}, backendtest.Permit)); got != "back final" {
				t.Errorf("Restore = %s, want the good record back", got)
			}
			if body := a.bodies("PATCH " + poolAt)[0].Body; strings.Count(body, `"add"`) != 1 || !strings.Contains(body, entry5) {
				t.Errorf("patch = %s, want one that adds the good record only", body)
			}
		})
	}
	for _, pool := range []string{"", "10.0.0.0-24", "/10.0.0.0-24", "kube-system/", "kube-system/a/b"} {
		r := with(func(r *ipam.Record) { r.Pool = pool })
		a, client := newAPI(t, map[string]http.HandlerFunc{})
		if got := restoreOutcomes(NewPools(client, Settings{}, atOnce).Restore(t.Context(), pool, []ipam.Record{r}, backendtest.Permit)); got != "final" || len(a.calls()) > 0 {
			t.Errorf("Restore into %q = %s after %s, want an error", pool, got, a.calls())
		}
	}
}

// The plugin loses an entry whose offset it cannot read, at its next write of the pool
// (toIPReservationList in its pkg/storage/kubernetes).
func TestOffsetThatThePluginCannotReadIsNotPutBack(t *testing.T) {
	const pool = `{"metadata": {"resourceVersion": "8"}, "spec": {"range": "fd00::/64", "allocations": {}}}`
	_, client := newAPI(t, map[string]http.HandlerFunc{"GET " + poolAt: say(pool), "PATCH " + poolAt: say("{}")})
	last, next := poolRecord("9223372036854775807", entry4), poolRecord("9223372036854775808", entry4)
	last.IP, next.IP = "fd00::7fff:ffff:ffff:ffff", "fd00::8000:0:0:0"
	errs := NewPools(client, Settings{}, atOnce).Restore(t.Context(), aPool, []ipam.Record{last, next}, backendtest.Permit)
	if got := restoreOutcomes(errs); got != "back final" || !strings.Contains(errs[1].Error(), "the plugin reads no offset above 2^63-1") {
		t.Errorf("Restore = %v, want the first back alone", errs)
	}
}

// What attachments never gave to a pod is not put back: an ADD of the pod in the record would adopt it. What
// one excludes goes back: a run has released it.
func TestAddressThatThePluginGivesToNoPodIsNotPutBack(t *testing.T) {
	const excluded = `, "range": "10.0.0.0/24", "exclude": ["10.0.0.4/31"]`
	for _, tt := range []struct {
		name        string
		attachments []string // the fields of their IPAM
		held        bool     // what is to be put back is there
		want        string   // of the entry, and of the overlapping reservation
		says        string   // a part of each error
	}{
		{"without an attachment", nil, false, "back back", ""},
		{"of a range that is given", []string{`, "range": "10.0.0.0/24", "gateway": "10.0.0.4"`}, false, "back back", ""},
		{"excluded", []string{excluded}, false, "back back", ""},
		{"excluded with the whole range", []string{`, "range": "10.0.0.0/24", "exclude": ["10.0.0.0/24"]`}, false, "back back", ""},
		{"excluded, and outside of the bounds of another", []string{excluded, `, "range": "10.0.0.0/24", "range_end": "10.0.0.3"`}, false, "back back", ""},
		{"excluded beside what cannot be decoded", []string{`, "range": "10.0.0.0/24", "exclude": ["10.0.0.4", "x"]`}, false, "back back", ""},
		{"excluded, and before the start", []string{excluded + `, "range_start": "10.0.0.5"`}, false, "final final", "gives only 10.0.0.5 to 10.0.0.254"},
		{"before the start", []string{`, "range": "10.0.0.0/24", "range_start": "10.0.0.5"`}, false, "final final",
			"10.0.0.4 is not put back: the network attachment shop/lan-0 gives only 10.0.0.5 to 10.0.0.254"},
		{"before the start, and there", []string{`, "range": "10.0.0.0/24", "range_start": "10.0.0.5"`}, true, "present present", ""},
		{"before the start of slices, which the plugin ignores", []string{`, "range": "10.0.0.0/24", "range_start": "10.0.0.5", "node_slice_size": "/26"`}, false, "back back", ""},
		{"after the end", []string{`, "range": "10.0.0.1-10.0.0.3/24"`}, false, "final final", "gives only 10.0.0.1 to 10.0.0.3"},
		{"in one of several ranges", []string{`, "ipRanges": [{"range": "fd00::/64"}, {"range": "10.0.0.0/24", "range_start": "10.0.0.5"}]`}, false, "final final", "gives only"},
		{"after the end of one attachment, and given by another", []string{`, "range": "10.0.0.0/24", "range_end": "10.0.0.3"`, `, "range": "10.0.0.0/24"`}, false, "back back", ""},
		{"after the end of one, and another cannot be decoded", []string{`, "range": "10.0.0.0/24", "range_end": "10.0.0.3"`, `, "range": "10.0.0.0/24", "exclude": ["x"]`}, false, "back back", ""},
		{"given from a start that the plugin may read in another way", []string{`, "range": "10.0.0.0/24", "range_start": "10.0.0.05"`}, false, "back back", ""},
		{"after the end of another network", []string{`, "range": "10.0.0.0/24", "range_end": "10.0.0.3", "network_name": "blue"`}, false, "back back", ""},
		{"after the end of another range", []string{`, "range": "10.1.0.0/24", "range_end": "10.1.0.3"`}, false, "back back", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var attached []string
			for i, fields := range tt.attachments {
				attached = append(attached, attachment(fmt.Sprint("lan-", i), single(fields)))
			}
			there, stored := overlappingNotFound, storedOverlapping("default/web-0", "")
			pool := reapedPool("")
			if tt.held {
				there, pool = say(stored), reapedPool(`"4":`+entry4+`,`)
			}
			_, client := newAPI(t, map[string]http.HandlerFunc{
				"GET ippools": items(pool), "GET overlappingrangeipreservations": items(), listAttachments: items(attached...),
				"GET " + poolAt: say(pool), getAt: there, "PATCH " + poolAt: say("{}"), createAt: say("{}"),
			})
			var compared, restored, used []error
			for _, one := range []struct {
				backend ipam.Backend
				record  ipam.Record
			}{{NewPools(client, Settings{}, atOnce), reaped[0]}, {NewOverlapping(client, Settings{}, atOnce), overlappingRecord(stored)}} {
				for _, err := range one.backend.List(t.Context()) {
					if object := (*ipam.ObjectError)(nil); err != nil && !errors.As(err, &object) {
						t.Fatal(err)
					}
				}
				compared = append(compared, backendtest.Compare(t.Context(), one.backend, one.record.Pool, []ipam.Record{one.record})...)
				inUse := one.record
				inUse.InUse = true
				used = append(used, backendtest.Compare(t.Context(), one.backend, inUse.Pool, []ipam.Record{inUse})...)
				restored = append(restored, one.backend.Restore(t.Context(), one.record.Pool, []ipam.Record{one.record}, backendtest.Permit)...)
			}
			if got := restoreOutcomes(used); got != strings.ReplaceAll(tt.want, "final", "back") {
				t.Errorf("of a pod that uses it: Compare = %s: %v", got, used)
			}
			for name, errs := range map[string][]error{"Compare": compared, "Restore": restored} {
				if got := restoreOutcomes(errs); got != tt.want {
					t.Errorf("%s = %s, want %s: %v", name, got, tt.want, errs)
				}
				for _, err := range errs {
					if err != nil && !strings.Contains(err.Error(), tt.says) {
						t.Errorf("%s = %v, want %q in it", name, err, tt.says)
					}
				}
			}
		})
	}
}
