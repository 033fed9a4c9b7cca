package state

import (
	"encoding/json"
	"slices"
	"strings"
)

// leavesOut reports whether a pod asks Multus for a network that its network-status does not
// name. Since 4.1, Multus writes no entry for a network whose plugin names no interface.
//
// Multus names a network by namespace and name. Until 3.4, it used the name in the network's
// configuration. Such a name stands for any network if the pod has the annotation that Multus
// wrote at that time. A name that a default entry also has stands for none.
func (s *showing) leavesOut(annotation, namespace string, old bool) bool {
	asked, ok := networksAsked(annotation, namespace)
	if !ok {
		return true
	}
	byDefault := make(map[string]bool, len(s.defaults))
	for _, name := range s.defaults {
		byDefault[name] = true
	}
	named := make(map[string]bool, len(s.networks))
	plain := 0
	for _, name := range s.networks {
		switch {
		case byDefault[name]:
		case strings.Contains(name, "/"):
			named[name] = true
		case old:
			plain++
		}
	}
	missing := slices.DeleteFunc(asked, func(name string) bool { return named[name] })
	return len(missing) > plain
}

// networksAsked returns the networks that a pod's annotation asks for, as Multus reads it: a
// list in JSON, or namespace/name@interface separated by commas, where namespace and interface
// may be missing. Each is namespace/name, possibly repeated. It returns false if the annotation
// cannot be read, or asks for more than maxEntries.
func networksAsked(annotation, namespace string) (asked []string, ok bool) {
	if len(annotation) > maxNetworkStatus {
		return nil, false
	}
	add := func(of, name string) {
		if of == "" {
			of = namespace
		}
		asked = append(asked, of+"/"+name)
	}
	if strings.ContainsAny(annotation, `[{"`) {
		var list []struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		}
		if err := json.Unmarshal([]byte(annotation), &list); err != nil {
			return nil, false
		}
		for _, n := range list {
			add(n.Namespace, n.Name)
		}
		return asked, len(asked) <= maxEntries
	}
	for text := range strings.SplitSeq(annotation, ",") {
		if len(asked) == maxEntries {
			return nil, false
		}
		text, _, _ = strings.Cut(text, "@")
		of, name, found := strings.Cut(text, "/")
		if !found {
			of, name = "", text
		}
		add(strings.TrimSpace(of), strings.TrimSpace(name))
	}
	return asked, true
}
