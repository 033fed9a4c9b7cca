package whereabouts

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 10. A record from a token restores the same as one of the stored object. An object
// of which that is not so is not plain.
func TestPlainRecordRestoresTheSame(t *testing.T) {
	const plain = `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"OverlappingRangeIPReservation","metadata":{` +
		`"creationTimestamp":"2026-03-01T12:00:00Z","generation":2,"managedFields":[{"manager":"whereabouts","fieldsV1":{"f:labels":{}}}],` +
		`"name":"10.0.0.4","namespace":"kube-system","resourceVersion":"44","uid":"u4"},` +
		`"spec":{"containerid":"a<b\"}","ifname":"net1","podref":"default/web-0","since":9007199254740993,"labels":{"finalizers":[1]}}}`
	in := func(metadata string) string { return strings.Replace(plain, `"uid":"u4"`, `"uid":"u4",`+metadata, 1) }
	for name, tt := range map[string]struct {
		stored string
		plain  bool
	}{
		"as the plugin writes it":     {plain, true},
		"with white space":            {strings.NewReplacer(`":`, `" : `, `{"`, "{\n\t\"").Replace(plain), true},
		"a label":                     {in(`"labels":{"a":"b"}`), false},
		"an annotation":               {in(`"annotations":{"a":"b"}`), false},
		"an owner":                    {in(`"ownerReferences":[{"name":"a"}]`), false},
		"a finalizer":                 {in(`"finalizers":["a/b"]`), false},
		"being deleted":               {in(`"deletionTimestamp":"2026-03-01T12:00:00Z"`), false},
		"a field of the metadata":     {in(`"more":1`), false},
		"a field with a quote":        {in(`"uid\"":1`), false},
		"a field of the object":       {strings.Replace(plain, `"spec"`, `"status":{},"spec"`, 1), false},
		"a field behind the spec":     {plain[:len(plain)-1] + `,"status":{"ready":true}}`, false},
		"metadata behind the spec":    {plain[:len(plain)-1] + `,"metadata":{"labels":{"a":"b"}}}`, false},
		"a tombstone":                 {withTombstone, false},
		"cut short":                   {plain[:40], true}, // it cannot be decoded, and is not released
		"a text that ends in its key": {`{"metadata":{"uid`, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isPlain(json.RawMessage(tt.stored)); got != tt.plain {
				t.Fatalf("isPlain = %v, want %v", got, tt.plain)
			}
			if !tt.plain || !json.Valid([]byte(tt.stored)) {
				return
			}
			_, client := newAPI(t, map[string]http.HandlerFunc{
				"GET overlappingrangeipreservations": items(tt.stored), "GET ippools": items(),
			})
			b := newOverlapping(client, Settings{UnknownFields: IgnoreUnknownFields}, 4)
			var listed []reaper.Allocation
			for pool, err := range b.List(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range pool.Allocations {
					a.Pool = pool.Name
					listed = append(listed, a)
				}
			}
			records, err := b.Record(t.Context(), listed)
			if err != nil || len(records) != 1 {
				t.Fatalf("Record = %s, %v, want one", records, err)
			}
			got, gotErr := readRecorded(overlappingRecord(string(records[0])))
			want, wantErr := readRecorded(overlappingRecord(tt.stored))
			if gotErr != nil || wantErr != nil {
				t.Fatal(gotErr, wantErr)
			}
			if !sameJSON(got.body, want.body) {
				t.Errorf("Restore creates\n%s\nfrom the token, and\n%s\nfrom the object", got.body, want.body)
			}
		})
	}
}

// Of many reservations that are due, only those that are not plain are read again.
func TestOnlyReservationsThatAreNotPlainAreReadAgain(t *testing.T) {
	plain := func(n int) string {
		return strings.ReplaceAll(storedPlain, "10.0.0.4", strings.Replace("10.0.0.N", "N", string(rune('0'+n)), 1))
	}
	labelled := strings.Replace(plain(3), `"uid"`, `"labels":{"a":"b"},"uid"`, 1)
	a, client := newAPI(t, map[string]http.HandlerFunc{
		"GET overlappingrangeipreservations": items(plain(1), plain(2), labelled), "GET ippools": items(),
		"GET " + at("10.0.0.3"): say(labelled),
	})
	b := NewOverlapping(client)
	var listed []reaper.Allocation
	for pool, err := range b.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		pool.Allocations[0].Pool = pool.Name
		listed = append(listed, pool.Allocations[0])
	}
	a.answer("", nil)
	records, err := b.Record(t.Context(), listed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"GET " + at("10.0.0.3")}, a.calls()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if string(records[2]) != labelled {
		t.Errorf("the record is %s, want the object as it is stored", records[2])
	}
}

// storedPlain is a reservation as the plugin writes it.
const storedPlain = `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"OverlappingRangeIPReservation","metadata":{` +
	`"creationTimestamp":"2026-03-01T12:00:00Z","generation":1,"name":"10.0.0.4","namespace":"kube-system","resourceVersion":"44","uid":"u4"},` +
	`"spec":{"containerid":"s4","ifname":"net1","podref":"default/web-0"}}`

func BenchmarkIsPlain(b *testing.B) {
	item := json.RawMessage(storedOverlapping("default/web-0", ""))
	b.SetBytes(int64(len(item)))
	for b.Loop() {
		isPlain(item)
	}
}
