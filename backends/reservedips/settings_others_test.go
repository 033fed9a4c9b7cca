package reservedips_test

import (
	"fmt"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
)

// A policy cannot have objects of a store or of Kubernetes deleted. Reading them only keeps
// addresses.
func TestOnlyObjectsOfTheOperatorsOwnAreDeleted(t *testing.T) {
	const text = header + "backends: {reservedIPs: {resources: [{resource: {group: %s, version: v1, resource: %s}, address: .a, ttl: .b, deleteExpired: %t}]}}"
	for _, tt := range []struct {
		group, resource string
		refused         bool
	}{
		{"whereabouts.cni.cncf.io", "overlappingrangeipreservations", true},
		{"k8s.cni.cncf.io", "network-attachment-definitions", true},
		{"crd.projectcalico.org", "ippools", true},
		{"projectcalico.org", "ipreservations", true},
		{"kubevirt.io", "virtualmachineinstances", true},
		{"apps", "statefulsets", true},
		{"network.example.com", "reservedips", false},
		{"network.example.com", "ippools", false},
		{"notk8s.io", "reservedips", false},
	} {
		t.Run(tt.resource+"."+tt.group, func(t *testing.T) {
			if _, err := policy.Load(fmt.Appendf(nil, text, tt.group, tt.resource, false), known); err != nil {
				t.Errorf("without deleteExpired: %v", err)
			}
			_, err := policy.Load(fmt.Appendf(nil, text, tt.group, tt.resource, true), known)
			if !tt.refused {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantRefusal(t, err, "backends.reservedIPs.resources[0].deleteExpired: Forbidden: must be false for "+tt.resource+"."+tt.group+
				": only objects of your own custom resources are deleted, never those of Kubernetes, Whereabouts, Calico or KubeVirt, or network attachments")
		})
	}
}
