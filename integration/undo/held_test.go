package undo_test

import (
	"encoding/json"
	"fmt"
)

// held is who has what: the entries of pools and blocks by their places, and other
// objects by their names.
func (st stores) held() map[string]string {
	all := map[string]string{}
	for path, o := range st {
		var content struct {
			Spec struct {
				Allocations json.RawMessage
				Attributes  []json.RawMessage
			}
		}
		if err := json.Unmarshal(o.raw, &content); err != nil {
			panic(err) // the API server sends objects
		}
		var entries map[string]json.RawMessage
		var ordinals []*int
		switch allocations := content.Spec.Allocations; {
		case len(allocations) == 0:
			all[path] = o.settled()
		case json.Unmarshal(allocations, &entries) == nil:
			for offset, entry := range entries {
				all[path+" "+offset] = string(entry)
			}
		case json.Unmarshal(allocations, &ordinals) == nil:
			for ordinal, index := range ordinals {
				if index != nil {
					all[fmt.Sprint(path, " ", ordinal)] = string(content.Spec.Attributes[*index])
				}
			}
		}
	}
	return all
}
