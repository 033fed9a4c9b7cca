package rows_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// A store is what the API server holds, in its own bytes: of a allocation the
// object by its name, of a pool the object without its allocations by its name
// and each allocation by name/key. What is not in the namespace of the pools
// has its namespace before its name.
//
// What a write of anything to an object changes is not in it: its version, its
// generation and who manages which field. Versions are apart.
type store struct {
	content  map[string]string
	versions map[string]string // of whole objects
}

// client speaks to the group of whereabouts.
func (s *scene) client() rest.Interface {
	return s.cluster.Whereabouts.WhereaboutsV1alpha1().RESTClient()
}

// store reads everything.
func (s *scene) store() store {
	s.Helper()
	st := store{map[string]string{}, map[string]string{}}
	for _, resource := range []string{"ippools", "overlappingrangeipreservations"} {
		data, err := s.client().Get().Resource(resource).Do(s.Context()).Raw()
		s.must(err)
		var list struct{ Items []json.RawMessage }
		s.must(json.Unmarshal(data, &list))
		for _, item := range list.Items {
			s.must(st.keep(item))
		}
	}
	return st
}

// keep takes one object apart.
func (st store) keep(item json.RawMessage) error {
	var object, metadata, spec map[string]json.RawMessage
	var allocations map[string]json.RawMessage
	if err := json.Unmarshal(item, &object); err != nil {
		return err
	}
	if err := json.Unmarshal(object["metadata"], &metadata); err != nil {
		return err
	}
	name := strings.TrimPrefix(text(metadata["namespace"])+"/"+text(metadata["name"]), cluster.PoolNamespace+"/")
	st.versions[name] = text(metadata["resourceVersion"])
	for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
		delete(metadata, field)
	}
	if err := json.Unmarshal(object["spec"], &spec); err != nil {
		return err
	}
	if raw, ok := spec["allocations"]; ok {
		if err := json.Unmarshal(raw, &allocations); err != nil {
			return err
		}
		spec["allocations"] = json.RawMessage(`"apart"`)
	}
	for key, entry := range allocations {
		st.content[name+"/"+key] = string(entry)
	}
	var err error
	if object["metadata"], err = json.Marshal(metadata); err != nil {
		return err
	}
	if object["spec"], err = json.Marshal(spec); err != nil {
		return err
	}
	whole, err := json.Marshal(object)
	st.content[name] = string(whole)
	return err
}

// text is a JSON string, or empty.
func text(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // what is no string is no name
	return s
}

// without returns the store as it has to be after a run that ended with these
// lines: what was released is not in it, and nothing else was even written, but
// for a allocation that was given back.
func (st store) without(lines []string) store {
	left := store{maps.Clone(st.content), maps.Clone(st.versions)}
	for _, line := range lines {
		fields := strings.Fields(line)
		outcome := fields[len(fields)-1]
		if outcome == "released" || outcome == "returned" {
			delete(left.versions, fields[0])
		}
		if outcome != "released" {
			continue
		}
		delete(left.content, fields[0])
		if pool, key := cutLast(fields[0]); key != "" {
			delete(left.versions, pool)
		}
	}
	return left
}

// same returns the lines of what is in both stores and the same in both. The
// others are about what the second does not hold any more.
func (st store) same(other store, lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		object, _, _ := strings.Cut(line, " ")
		return st.content[object] != other.content[object]
	})
}

// cutLast splits at the last slash.
func cutLast(s string) (before, after string) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i+1:]
}

// wantStore fails the test unless the store is this, and the objects whose
// version is in it are of that version.
func (s *scene) wantStore(want store) {
	s.Helper()
	got := s.store()
	if diff := cmp.Diff(want.content, got.content); diff != "" {
		s.Errorf("store (-want +got):\n%s", diff)
	}
	for name, version := range want.versions {
		if got.versions[name] != version {
			s.Errorf("%s was written: its version was %s and is %q", name, version, got.versions[name])
		}
	}
}
