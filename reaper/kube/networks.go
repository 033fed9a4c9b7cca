package kube

import (
	"encoding/json"
	"strings"
)

// asksForMore reports whether a pod may have an address in a network that its
// network-status leaves out: the pod asks Multus for more networks than the network-status
// names beside the default one. Multus since 4.1 writes no entry for a network whose plugin
// names no interface.
func (s *showing) asksForMore(annotation, namespace string) bool {
	if annotation == "" {
		return false
	}
	asked, ok := networksAsked(annotation, namespace)
	return !ok || len(s.interfaces) == 0 || len(s.networks) < asked
}

// networksAsked returns how many different networks the annotation of a pod asks for, as
// Multus reads it: a list in JSON, or namespace/name@interface with commas in between, where
// namespace and interface may be missing. It returns false if it cannot be read.
func networksAsked(annotation, namespace string) (int, bool) {
	if len(annotation) > maxNetworkStatus {
		return 0, false
	}
	type network struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	}
	var asked []network
	if strings.ContainsAny(annotation, `[{"`) {
		if err := json.Unmarshal([]byte(annotation), &asked); err != nil {
			return 0, false
		}
	} else {
		for text := range strings.SplitSeq(annotation, ",") {
			text, _, _ = strings.Cut(strings.TrimSpace(text), "@")
			of, name, ok := strings.Cut(text, "/")
			if !ok {
				of, name = "", text
			}
			asked = append(asked, network{of, name})
		}
	}
	different := make(map[network]bool, len(asked))
	for _, n := range asked {
		if n.Namespace == "" {
			n.Namespace = namespace
		}
		different[n] = true
	}
	return len(different), true
}
