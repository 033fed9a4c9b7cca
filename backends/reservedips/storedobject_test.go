package reservedips

import (
	"encoding/json"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// If a record of another resource, or with another object, passed, a restore would create an
// object that nothing here ever deleted.
func TestRecordIsOfTheResourceAndItsObject(t *testing.T) {
	r, err := newReservedResource(everyPath)
	if err != nil {
		t.Fatal(err)
	}
	object := reservedObject("web-0", "shop", "")
	for name, tt := range map[string]struct {
		change func(*ipam.Record)
		ok     bool
	}{
		"as it was made": {func(*ipam.Record) {}, true},
		"of a list, without its version": {func(r *ipam.Record) {
			r.Stored = json.RawMessage(`{"metadata":{"name":"web-0","namespace":"shop","uid":"u1","resourceVersion":"7"}}`)
		}, true},
		"with another version": {func(r *ipam.Record) {
			r.Stored = json.RawMessage(`{"apiVersion":"v1","metadata":{"name":"web-0","namespace":"shop","uid":"u1","resourceVersion":"7"}}`)
		}, false},
		"of another backend":  {func(r *ipam.Record) { r.Backend = "calico" }, false},
		"of another resource": {func(r *ipam.Record) { r.Pool = "secrets.v1." }, false},
		"of another object":   {func(r *ipam.Record) { r.Key = "shop/web-1" }, false},
		"without an object":   {func(r *ipam.Record) { r.Stored = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			record := ipam.Record{Backend: Name, Pool: r.pool, Key: "shop/web-0", Stored: object}
			tt.change(&record)
			if _, err := r.readRecord(record); (err == nil) != tt.ok {
				t.Errorf("readRecord: %v, want that it passes: %v", err, tt.ok)
			}
		})
	}
}
