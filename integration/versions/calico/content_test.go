package calico_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// content is what Calico knows of a stored object: the spec of a custom resource, or all
// of the value of a key.
func content(t *testing.T, text string) string {
	t.Helper()
	if spec := parse(t, text).get("spec"); spec != nil {
		return string(spec)
	}
	return text
}

// withContent is the stored object with that content. The API server writes members in
// the order of their names.
func withContent(t *testing.T, text string, c object) string {
	t.Helper()
	o := parse(t, text)
	if o.get("spec") == nil {
		return string(c.text())
	}
	slices.SortFunc(c, func(x, y member) int { return strings.Compare(x.name, y.name) })
	o.set("spec", c.text())
	return unmanaged(t, string(o.text()))
}

// unmanaged is a stored object without what the API server writes into its metadata at
// each write.
func unmanaged(t *testing.T, text string) string {
	t.Helper()
	o := parse(t, text)
	if metadata := o.get("metadata"); metadata != nil {
		m := parse(t, string(metadata))
		m.remove("generation")
		m.remove("managedFields")
		o.set("metadata", m.text())
	}
	return string(o.text())
}

// generation is that of a stored object, and 0 of one without metadata.
func generation(t *testing.T, text string) int {
	t.Helper()
	metadata := parse(t, text).get("metadata")
	if metadata == nil {
		return 0
	}
	return number(t, parse(t, string(metadata)).get("generation"))
}

// handleOf is the ID of an attribute's handle, and empty if there is none. An interface
// may stand behind it.
func handleOf(t *testing.T, attribute json.RawMessage) string {
	t.Helper()
	var a struct {
		Handle string `json:"handle_id"`
	}
	if err := json.Unmarshal(attribute, &a); err != nil {
		t.Fatal(err)
	}
	id, _, _ := strings.Cut(a.Handle, "\r")
	return id
}
