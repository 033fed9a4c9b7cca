package upgrade_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/snapshot"
)

// objects are what stores hold: the objects of the API server, by path.
type objects map[string]json.RawMessage

// objectsOf returns the objects of a store without managedFields.
func objectsOf(t testing.TB, s snapshot.Store) objects {
	t.Helper()
	all := objects{}
	for path, o := range s {
		var fields, metadata map[string]json.RawMessage
		decode(t, o.Raw, &fields)
		decode(t, fields["metadata"], &metadata)
		delete(metadata, "managedFields")
		fields["metadata"] = encode(t, metadata)
		all[path] = encode(t, fields)
	}
	return all
}

// store is the reverse of objectsOf.
func (all objects) store(t testing.TB) snapshot.Store {
	t.Helper()
	s := snapshot.Store{}
	for path, raw := range all {
		for _, r := range snapshot.All() {
			rest, ok := strings.CutPrefix(path, r.API+"/")
			if !ok {
				continue
			}
			namespace := ""
			if below, ok := strings.CutPrefix(rest, "namespaces/"); ok {
				namespace, rest, _ = strings.Cut(below, "/")
			}
			if name, ok := strings.CutPrefix(rest, r.Name+"/"); ok {
				s[path] = snapshot.Object{Resource: r, Namespace: namespace, Name: name, Raw: raw}
			}
		}
		if _, ok := s[path]; !ok {
			t.Fatalf("%s is in no store", path)
		}
	}
	return s
}

func decode(t testing.TB, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func encode(t testing.TB, v any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
