package whereabouts

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Almost all overlapping reservations are plain: the plugin writes no metadata but the name.
// Then the token has all that Restore puts back, and a record needs no second reading.

// The fields of a plain object, and of its metadata. Restore puts back none of the metadata
// but the names.
var (
	plainFields   = []string{"apiVersion", "kind", "metadata", "spec"}
	plainMetadata = []string{
		"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink",
	}
)

// isPlain reports whether a stored object has no other fields than those. It never says so of
// one that has.
func isPlain(item json.RawMessage) bool {
	depth, inMetadata := 0, false
	for i := 0; i < len(item); i++ {
		switch item[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			begin := i + 1
			i = begin + textLen(item[begin:])
			if depth > 2 || depth == 2 && !inMetadata || i >= len(item) || !isKey(item[i+1:]) {
				continue
			}
			key, known := string(item[begin:i]), plainMetadata
			if depth == 1 {
				known, inMetadata = plainFields, key == "metadata"
			}
			if !slices.Contains(known, key) {
				return false
			}
		}
	}
	return true
}

// textLen returns the length of a text by what follows its first quote.
func textLen(rest []byte) int {
	for n := 0; ; n++ {
		quote := bytes.IndexByte(rest[n:], '"')
		if quote < 0 {
			return len(rest)
		}
		n += quote
		if escapes := n - len(bytes.TrimRight(rest[:n], `\`)); escapes%2 == 0 {
			return n
		}
	}
}

// isKey reports whether the text before the rest of an object is a key.
func isKey(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

// readNoting is readReservation for a listing, and notes the objects that are not plain.
func (b *Overlapping) readNoting(odd *sync.Map) func(item json.RawMessage) reservation {
	b.odd.Store(odd)
	return func(item json.RawMessage) reservation {
		r := readReservation(item)
		if !isPlain(item) {
			odd.Store(r.pool, true)
		}
		return r
	}
}

// plainRecord returns the record of a plain object from its token. It returns nothing for any
// other object, and for one that this backend has not listed. An object that was written
// since is not released, because its version is another one.
func (b *Overlapping) plainRecord(r reaper.Allocation) json.RawMessage {
	odd := b.odd.Load()
	listed, err := readToken(r.Token)
	if odd == nil || err != nil || len(listed.Spec) == 0 {
		return nil
	}
	if _, is := odd.Load(r.Pool); is {
		return nil
	}
	type metadata struct {
		CreationTimestamp time.Time `json:"creationTimestamp,omitzero"`
		Name              string    `json:"name"`
		Namespace         string    `json:"namespace"`
		ResourceVersion   string    `json:"resourceVersion"`
		UID               string    `json:"uid"`
	}
	namespace, name := splitPool(r.Pool)
	var record bytes.Buffer
	encoder := json.NewEncoder(&record)
	encoder.SetEscapeHTML(false)
	err = encoder.Encode(struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Metadata   metadata        `json:"metadata"`
		Spec       json.RawMessage `json:"spec"`
	}{
		v1alpha1.SchemeGroupVersion.String(), overlappingKind,
		metadata{r.Created.UTC(), name, namespace, listed.Metadata.ResourceVersion, listed.Metadata.UID}, listed.Spec,
	})
	if err != nil {
		return nil
	}
	return bytes.TrimSuffix(record.Bytes(), []byte("\n"))
}
