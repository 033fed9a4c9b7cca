package reservedips

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A head has the decoded parts common to all objects.
type head struct {
	APIVersion string        `json:"apiVersion"` // empty in lists of built-in resources
	Metadata   kube.Metadata `json:"metadata"`
}

// readHead decodes a head. It returns an error for an object that no API server can
// have stored.
func readHead(data json.RawMessage) (head, error) {
	var h head
	if err := kube.Decode(data, &h); err != nil {
		return h, fmt.Errorf("decode: %w", err)
	}
	if h.Metadata.Name == "" || h.Metadata.UID == "" || h.Metadata.ResourceVersion == "" {
		return h, errors.New("an object lacks its name, uid or resourceVersion")
	}
	return h, nil
}

// key returns namespace/name, or the name alone.
func (h head) key() string {
	if h.Metadata.Namespace == "" {
		return h.Metadata.Name
	}
	return h.Metadata.Namespace + "/" + h.Metadata.Name
}

// A storedObject is a whole object, to compare and to write again.
type storedObject struct {
	head
	fields  map[string]any // the whole object
	content map[string]any // the fields without type, metadata and status
	status  any            // nil if there is none, or it is empty
}

// readStored decodes an object.
func readStored(data json.RawMessage) (storedObject, error) {
	var o storedObject
	var err error
	if o.head, err = readHead(data); err != nil {
		return o, err
	}
	if err := kube.Decode(data, &o.fields); err != nil {
		return o, fmt.Errorf("decode: %w", err)
	}
	o.content, o.status = maps.Clone(o.fields), o.fields["status"]
	if fields, ok := o.status.(map[string]any); ok && len(fields) == 0 {
		o.status = nil
	}
	for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(o.content, field)
	}
	return o, nil
}

// readRecord decodes the record of an object of the resource. It returns an error
// for a record that Record cannot have returned.
func (r reservedResource) readRecord(record ipam.Record) (storedObject, error) {
	o, err := readStored(record.Stored)
	if err != nil {
		return o, err
	}
	version := r.GroupVersion().String()
	switch {
	case record.Backend != Name || record.Pool != r.pool:
		return o, fmt.Errorf("the record is of %s %s, not of %s %s", record.Backend, record.Pool, Name, r.pool)
	case o.APIVersion != "" && o.APIVersion != version:
		return o, fmt.Errorf("the record has an object of %q, not of %s", o.APIVersion, version)
	case o.key() != record.Key:
		return o, fmt.Errorf("the record is of %q and has the object %q", record.Key, o.key())
	}
	return o, nil
}
