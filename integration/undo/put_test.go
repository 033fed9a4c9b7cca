package undo_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit/parallel"
)

// put makes the API server's stores hold this and nothing else, by writing what
// differs.
func (s *scene) put(want stores) {
	s.Helper()
	now := s.stores()
	all := maps.Clone(now)
	maps.Copy(all, want)
	s.must(parallel.Each(8, slices.Collect(maps.Keys(all)), func(_ int, path string) error {
		is, there := now[path]
		o, wanted := want[path]
		switch {
		case !wanted:
			return s.client().Delete().AbsPath(path).Do(s.Context()).Error()
		case there && is.settled() == o.settled():
			return nil
		default:
			return s.write(o, is, there)
		}
	}))
}

// write creates an object, or writes it over the one that is there.
func (s *scene) write(o, is object, there bool) error {
	fields, metadata := o.parts()
	for _, name := range []string{"resourceVersion", "generation", "managedFields", "uid", "creationTimestamp"} {
		delete(metadata, name)
	}
	request := s.client().Post().AbsPath(o.collection(o.namespace))
	if there {
		_, now := is.parts()
		metadata["resourceVersion"] = now["resourceVersion"]
		request = s.client().Put().AbsPath(o.path())
	}
	raw, err := s.send(request, fields, metadata)
	if err != nil || fields["status"] == nil {
		return err
	}
	// The API server has left the status out.
	_, metadata = object{raw: raw}.parts()
	_, err = s.send(s.client().Put().AbsPath(o.path()+"/status"), fields, metadata)
	return err
}

// send sends an object and returns the answer.
func (s *scene) send(request *rest.Request, fields, metadata map[string]json.RawMessage) ([]byte, error) {
	var err error
	if fields["metadata"], err = json.Marshal(metadata); err != nil {
		return nil, err
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	raw, err := request.SetHeader("Content-Type", "application/json").Body(body).Do(s.Context()).Raw()
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", fields["metadata"], err)
	}
	return raw, nil
}
