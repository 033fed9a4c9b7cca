package upgrade_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// An about says of which version a recording is.
type about struct {
	Commit     string
	RecordedAt time.Time
}

// A recording is a folder of testdata.
type recording struct{ revision, dir string }

// recordings returns all recordings, the latest one first.
func recordings(t testing.TB) []recording {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join("testdata", "*", "about.json"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	var all []recording
	at := map[string]time.Time{}
	for _, file := range folders {
		r := recording{filepath.Base(filepath.Dir(file)), filepath.Dir(file)}
		at[r.revision] = read[about](t, r, "about").RecordedAt
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b recording) int { return at[b.revision].Compare(at[a.revision]) })
	return all
}

// read reads a file of a recording.
func read[T any](t testing.TB, r recording, name string) (v T) {
	t.Helper()
	if err := json.Unmarshal(r.text(t, name+".json"), &v); err != nil {
		t.Fatalf("%s of %s: %v", name, r.revision, err)
	}
	return v
}

// text reads a file of a recording as it is.
func (r recording) text(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// write writes a file of a recording, in lines, with the objects as they are stored.
func (r recording) write(t testing.TB, name string, v any) {
	t.Helper()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(v)
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, name+".json"), text.Bytes(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// bare returns objects without what an API server adds to each.
func bare(all []corev1.ConfigMap) []corev1.ConfigMap {
	for i := range all {
		all[i].ManagedFields, all[i].UID, all[i].ResourceVersion = nil, "", ""
	}
	return all
}

// replayable leaves only the places whose identity outlasts a copy of their object. That of
// a reservation has the UID and the version of the object, and the entry beside it waits for
// it.
func (l legacy) replayable() legacy {
	some := map[string]time.Time{}
	for place, at := range l.Waiting {
		if strings.HasPrefix(place, "calico ") || strings.Contains(place, "10.2.0.0-24") {
			some[place] = at
		}
	}
	l.Waiting = some
	return l
}
