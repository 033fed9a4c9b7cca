package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// What one command prints, another takes.
func TestPoolsNamed(t *testing.T) {
	pool := func(backend, name, in string) report.PoolReport {
		return report.PoolReport{Backend: backend, Name: name, Range: in}
	}
	network := func(backend, name, in string, pools ...string) report.NetworkReport {
		return report.NetworkReport{Backend: backend, Name: name, Range: in, Pools: pools}
	}
	r := report.Report{
		Layout: report.Layout{Pools: []report.PoolReport{
			pool("calico", "10.30.0.0/26", "10.30.0.0/26"), pool("calico", "10.30.0.64/26", "10.30.0.64/26"), pool("calico", "10.31.0.0/26", "10.31.0.0/26"),
			pool("whereabouts", "kube-system/10.112.0.0-24", "10.112.0.0/24"), pool("whereabouts", "kube-system/edge-10.112.0.0-24", "10.112.0.0/24"),
			pool("whereabouts", "kube-system/fd00---64", "fd00::/64"),
		}, Networks: []report.NetworkReport{
			network("calico", "default", "10.30.0.0/24", "10.30.0.0/26", "10.30.0.64/26"), network("calico", "spare", "10.40.0.0/24"),
			network("calico", "(no IPPool)", "", "10.31.0.0/26"), network("whereabouts", "edge", "10.112.0.0/24", "kube-system/edge-10.112.0.0-24"),
			network("whereabouts", "10.112.0.0-24", "10.112.0.0/24", "kube-system/10.112.0.0-24"),
		}},
	}
	ref := func(backend, name string) ipam.PoolRef { return ipam.PoolRef{Backend: backend, Name: name} }
	plain, edge := ref("whereabouts", "kube-system/10.112.0.0-24"), ref("whereabouts", "kube-system/edge-10.112.0.0-24")
	first, second := ref("calico", "10.30.0.0/26"), ref("calico", "10.30.0.64/26")
	for _, tt := range []struct {
		what, name string
		want       []ipam.PoolRef
		unknown    bool
	}{
		{"a pool", "kube-system/10.112.0.0-24", []ipam.PoolRef{plain}, false},
		{"a pool without its namespace, which is a network too", "10.112.0.0-24", []ipam.PoolRef{plain}, false},
		{"a block", "10.30.0.0/26", []ipam.PoolRef{first}, false},
		{"the length of a block", "26", nil, true},
		{"a network", "edge", []ipam.PoolRef{edge}, false},
		{"a network of several blocks", "default", []ipam.PoolRef{first, second}, false},
		{"a network without a pool", "spare", nil, false},
		{"a network without a range", "(no IPPool)", []ipam.PoolRef{ref("calico", "10.31.0.0/26")}, false},
		{"the CIDR of a network", "10.30.0.0/24", []ipam.PoolRef{first, second}, false},
		{"the CIDR of two networks", "10.112.0.0/24", []ipam.PoolRef{plain, edge}, false},
		{"the CIDR of a network without a pool", "10.40.0.0/24", nil, false},
		{"a CIDR around several networks", "10.30.0.7/15", []ipam.PoolRef{first, second, ref("calico", "10.31.0.0/26")}, false},
		{"a CIDR of IPv6", "fd00::/16", []ipam.PoolRef{ref("whereabouts", "kube-system/fd00---64")}, false},
		{"a CIDR inside of a pool", "10.112.0.0/25", nil, true},
		{"a CIDR of IPv6 around IPv4", "::/0", []ipam.PoolRef{ref("whereabouts", "kube-system/fd00---64")}, false},
		{"an address", "10.30.0.1", nil, true},
		{"nothing", "", nil, true},
	} {
		t.Run(tt.what, func(t *testing.T) {
			got, known := r.PoolsNamed(tt.name)
			want := make(map[ipam.PoolRef]bool)
			for _, pool := range tt.want {
				want[pool] = true
			}
			if diff := cmp.Diff(want, got); diff != "" || known == tt.unknown {
				t.Errorf("PoolsNamed(%q) is known: %v (-want +got):\n%s", tt.name, known, diff)
			}
		})
	}
	for _, name := range r.PoolNames() {
		if _, known := r.PoolsNamed(name); !known {
			t.Errorf("%q is a name of a pool or network, and stands for nothing", name)
		}
	}
}
