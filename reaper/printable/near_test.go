package printable_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

func TestNear(t *testing.T) {
	fields := []string{"maxReleases", "maxFraction", "maxPodDrop", "minEntries", "minAge", "pods"}
	for _, tt := range []struct {
		name, typed string
		names, want []string
	}{
		{"another case", "MinEntries", fields, []string{"minEntries"}},
		{"a letter too many", "maxFractions", fields, []string{"maxFraction"}},
		{"a letter too few", "pod", fields, []string{"pods"}},
		{"another letter", "node-b", []string{"node-a", "node-c", "web-0"}, []string{"node-a", "node-c"}},
		{"letters swapped", "shpo", []string{"shop", "pods"}, []string{"shop"}},
		{"the beginning", "max", fields, []string{"maxFraction", "maxPodDrop", "maxReleases"}},
		{"fewer edits win", "edge-1", []string{"edge-12", "ridge-12", "edge"}, []string{"edge-12"}},
		{"three at most, in order", "n-0", []string{"n-4", "n-3", "n-2", "n-1", "n-1"}, []string{"n-1", "n-2", "n-3"}},
		{"without its namespace", "lan-cams", []string{"kube-system/lan-cams", "shop/lan-cam", "shop/lan-camp"}, []string{"kube-system/lan-cams"}},
		{"in capitals", "Kube-System/LAN-cams", []string{"kube-system/lan-cams"}, []string{"kube-system/lan-cams"}},
		{"the object of a block", "10-0-0-0-26", []string{"10.0.0.0/26", "10.0.0.64/26"}, []string{"10.0.0.0/26"}},
		{"another mask", "10.0.0.0/255.255.255.0", []string{"10.0.0.0/24", "10.0.1.0/24"}, []string{"10.0.0.0/24"}},
		{"a CIDR inside of a range", "10.0.0.128/25", []string{"10.0.0.0/24", "10.0.1.128/25"}, []string{"10.0.0.0/24"}},
		{"an address", "fd00::7", []string{"10.0.0.0/24", "fd00::/64"}, []string{"fd00::/64"}},
		{"the length of a range", "24", []string{"10.0.0.0/24"}, nil},
		{"nothing like it", "gateway", fields, nil},
		{"one edit of a short name", "ab", []string{"cd", "ad"}, []string{"ad"}},
		{"nothing typed", "", []string{"calico"}, nil},
		{"much longer than any name", strings.Repeat("pods", 1<<20), fields, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, printable.Near(tt.typed, tt.names), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Near(%.20q) (-want +got):\n%s", tt.typed, diff)
			}
		})
	}
}
