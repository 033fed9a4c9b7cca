package reservedips

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// serverMetadata is what the API server writes into the metadata of an object, and
// refuses or replaces in one that is new.
var serverMetadata = []string{
	"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields",
	"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
}

// A head is what is read of any object.
type head struct {
	APIVersion string `json:"apiVersion"` // lists of built-in resources leave it out
	Metadata   struct {
		Namespace       string   `json:"namespace"`
		Name            string   `json:"name"`
		UID             string   `json:"uid"`
		ResourceVersion string   `json:"resourceVersion"`
		Deleted         *string  `json:"deletionTimestamp"`
		Finalizers      []string `json:"finalizers"`
	} `json:"metadata"`
}

// readHead refuses what no API server has stored.
func readHead(data json.RawMessage) (head, error) {
	var h head
	if err := kube.Decode(data, &h); err != nil {
		return h, fmt.Errorf("decode: %w", err)
	}
	if h.Metadata.Name == "" || h.Metadata.UID == "" || h.Metadata.ResourceVersion == "" {
		return h, errors.New("an object has no name, no uid or no resourceVersion")
	}
	return h, nil
}

// key is namespace/name, or the name alone.
func (h head) key() string {
	if h.Metadata.Namespace == "" {
		return h.Metadata.Name
	}
	return h.Metadata.Namespace + "/" + h.Metadata.Name
}

// A storedObject is a whole object, ready to be compared and written again.
type storedObject struct {
	head
	fields  map[string]json.RawMessage // as they are stored
	content map[string]any             // but for its type, its metadata and its status
	status  any                        // nil where there is none, or an empty one
}

// readStored understands an object.
func readStored(data json.RawMessage) (storedObject, error) {
	var o storedObject
	var err error
	if o.head, err = readHead(data); err != nil {
		return o, err
	}
	if err := kube.Decode(data, &o.fields); err != nil {
		return o, fmt.Errorf("decode: %w", err)
	}
	if err := kube.Decode(data, &o.content); err != nil {
		return o, fmt.Errorf("decode: %w", err)
	}
	o.status = o.content["status"]
	if fields, ok := o.status.(map[string]any); ok && len(fields) == 0 {
		o.status = nil
	}
	for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(o.content, field)
	}
	return o, nil
}

// creation is the object as it is created again.
func (o storedObject) creation() ([]byte, error) {
	var metadata map[string]json.RawMessage
	if err := kube.Decode(o.fields["metadata"], &metadata); err != nil {
		return nil, fmt.Errorf("decode metadata: %w", err)
	}
	for _, field := range serverMetadata {
		delete(metadata, field)
	}
	encoded, err := json.Marshal(metadata)
	if err != nil {
		return nil, err
	}
	fields := maps.Clone(o.fields)
	fields["metadata"] = encoded
	return json.Marshal(fields)
}

// readRecord understands what a journal has of an object of the resource, and
// refuses what List cannot have returned.
func (r reservedResource) readRecord(record reaper.Record) (storedObject, error) {
	o, err := readStored(record.Stored)
	if err != nil {
		return o, err
	}
	version := r.GroupVersion().String()
	switch {
	case record.Backend != Name || record.Pool != r.pool:
		return o, fmt.Errorf("the record is of %s %s", record.Backend, record.Pool)
	case o.APIVersion != "" && o.APIVersion != version:
		return o, fmt.Errorf("the record has an object of %q, not of %s", o.APIVersion, version)
	case o.key() != record.Key:
		return o, fmt.Errorf("the record has the object %q", o.key())
	}
	return o, nil
}
