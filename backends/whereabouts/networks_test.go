package whereabouts

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// emptyPool returns an IPPool without allocations.
func emptyPool(name, in string) json.RawMessage {
	return fmt.Appendf(nil, `{"metadata": {"namespace": "kube-system", "name": %q}, "spec": {"range": %q}}`, name, in)
}

// sliceOfTwo is a NodeSlicePool with two slices, one of which has no node yet.
func sliceOfTwo(name string) string {
	return fmt.Sprintf(`{"apiVersion": "whereabouts.cni.cncf.io/v1alpha1", "kind": "NodeSlicePool",
		"metadata": {"namespace": "kube-system", "name": %q}, "spec": {"range": "10.0.0.0/24", "sliceSize": "/25"},
		"status": {"allocations": [{"nodeName": "n1", "sliceRange": "10.0.0.0/25"}, {"nodeName": "", "sliceRange": "10.0.0.128/25"}]}}`, name)
}

// linesOf returns a line for each network.
func linesOf(networks []ipam.Network) []string {
	var lines []string
	for _, n := range networks {
		capacity := "unknown"
		if n.Known {
			capacity = n.Usable.Count().String()
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %v %s", n.Name, n.Range, capacity, n.Pools, n.Closed)))
	}
	return lines
}

// A network has what the attachments of its range and network_name hand out.
func TestAttachmentsMakeNetworks(t *testing.T) {
	sliced := single(`, "range": "10.0.0.0/24", "node_slice_size": "/25", "exclude": ["10.0.0.1"]`)
	denied := refuse(apierrors.NewForbidden(schema.GroupResource{Resource: sliceResource}, "", nil))
	for name, tt := range map[string]struct {
		attachments []string
		slices      http.HandlerFunc
		pools       []json.RawMessage
		want        []string
		err         string // its beginning
	}{
		"no attachment": {
			pools: []json.RawMessage{emptyPool("10.0.0.0-24", "10.0.0.0/24")},
			want:  []string{"10.0.0.0-24 10.0.0.0/24 254 [kube-system/10.0.0.0-24]"},
		},
		"no pool": {
			attachments: []string{single(`, "range": "10.0.0.0/24"`)}, want: []string{"10.0.0.0-24 10.0.0.0/24 254 []"},
		},
		"bounds and excludes": {
			attachments: []string{single(`, "range": "10.0.0.0/24", "range_start": "10.0.0.10", "range_end": "10.0.0.19", "exclude": ["10.0.0.10/31", "10.0.0.11"]`)},
			pools:       []json.RawMessage{emptyPool("10.0.0.0-24", "10.0.0.0/24")},
			want:        []string{"10.0.0.0-24 10.0.0.0/24 8 [kube-system/10.0.0.0-24]"},
		},
		"a range with its first address": {
			attachments: []string{single(`, "range": "10.0.0.10-10.0.0.19/24"`)}, want: []string{"10.0.0.0-24 10.0.0.0/24 10 []"},
		},
		"the union of several": {
			attachments: []string{
				single(`, "range": "10.0.0.0/24", "range_start": "10.0.0.10", "range_end": "10.0.0.19", "exclude": ["10.0.0.15"]`),
				single(`, "range": "10.0.0.0/24", "range_start": "10.0.0.15", "range_end": "10.0.0.24", "exclude": ["10.0.0.16"]`),
			},
			want: []string{"10.0.0.0-24 10.0.0.0/24 15 []"},
		},
		"a gateway is given": {
			attachments: []string{single(`, "range": "10.0.0.0/29", "gateway": "10.0.0.1"`)}, want: []string{"10.0.0.0-29 10.0.0.0/29 6 []"},
		},
		"several ranges, and a network_name": {
			attachments: []string{inBlue(`, "range": "10.0.0.0/29", "ipRanges": [{"range": "fd00::/120"}]`), single(`, "range": "10.0.0.0/29"`)},
			pools:       []json.RawMessage{emptyPool("blue-10.0.0.0-29", "10.0.0.0/29")},
			want: []string{
				"10.0.0.0-29 10.0.0.0/29 6 []", "blue-10.0.0.0-29 10.0.0.0/29 6 [kube-system/blue-10.0.0.0-29]", "blue-fd00---120 fd00::/120 254 []",
			},
		},
		"all is excluded": {attachments: []string{single(`, "range": "10.0.0.0/29", "exclude": ["10.0.0.0/24"]`)}, want: []string{"10.0.0.0-29 10.0.0.0/29 0 []"}},
		"too small a range": {
			attachments: []string{single(`, "range": "10.0.0.0/31"`)},
			want:        []string{"10.0.0.0-31 10.0.0.0/31 0 [] a range of fewer than four addresses has none for pods"},
		},
		"refused by the plugin": {attachments: []string{single(`, "range": "10.0.0.0/29", "exclude": ["x"]`)}, want: []string{"10.0.0.0-29 10.0.0.0/29 unknown []"}},
		"not decoded by the plugin": {
			attachments: []string{single(`, "range": "10.0.0.0/29", "exclude": "x"`)}, pools: []json.RawMessage{emptyPool("10.0.0.0-29", "10.0.0.0/29")},
			want: []string{"10.0.0.0-29 10.0.0.0/29 unknown [kube-system/10.0.0.0-29]"},
		},
		"refused, beside another": {
			attachments: []string{single(`, "range": "10.0.0.0/29", "exclude": ["x"]`), single(`, "range": "10.0.0.0/29", "exclude": ["10.0.0.1"]`)},
			want:        []string{"10.0.0.0-29 10.0.0.0/29 5 []"},
		},
		"read in another way, beside another": {
			attachments: []string{single(`, "range": "10.0.0.0/29", "range_start": "010.0.0.1"`), single(`, "range": "10.0.0.0/29"`)},
			want:        []string{"10.0.0.0-29 10.0.0.0/29 unknown []"},
		},
		"slices of nodes": {
			attachments: []string{sliced}, slices: items(sliceOfTwo("net")),
			pools: []json.RawMessage{emptyPool("n1-10.0.0.0-25", "10.0.0.0/25"), emptyPool("10.0.0.128-25", "10.0.0.128/25"), emptyPool("gone-10.0.0.128-25", "10.0.0.128/25")},
			want: []string{
				"kube-system/net 10.0.0.0/24 252 [kube-system/n1-10.0.0.0-25 kube-system/gone-10.0.0.128-25]",
				"10.0.0.128-25 10.0.0.128/25 126 [kube-system/10.0.0.128-25]",
			},
		},
		"slices of two networks": {
			attachments: []string{sliced}, slices: items(sliceOfTwo("net"), sliceOfTwo("blue")),
			pools: []json.RawMessage{emptyPool("n1-10.0.0.0-25", "10.0.0.0/25"), emptyPool("blue-n1-10.0.0.0-25", "10.0.0.0/25")},
			want: []string{
				"kube-system/net 10.0.0.0/24 252 [kube-system/n1-10.0.0.0-25]", "kube-system/blue 10.0.0.0/24 252 [kube-system/blue-n1-10.0.0.0-25]",
			},
		},
		"slices that cannot be listed": {
			attachments: []string{sliced, single(`, "range": "10.1.0.0/29"`)}, slices: denied,
			pools: []json.RawMessage{emptyPool("n1-10.0.0.0-25", "10.0.0.0/25")},
			want:  []string{"10.1.0.0-29 10.1.0.0/29 6 []", "n1-10.0.0.0-25 10.0.0.0/25 unknown [kube-system/n1-10.0.0.0-25]"},
			err:   "list nodeslicepools.whereabouts.cni.cncf.io: ",
		},
		"slices that cannot be decoded": {
			attachments: []string{sliced}, slices: items(strings.Replace(sliceOfTwo("net"), "10.0.0.128/25", "10.x", 1)),
			err: "NodeSlicePool kube-system/net: status.allocations: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var attachments, pools []string
			for i, config := range tt.attachments {
				attachments = append(attachments, attachment(fmt.Sprint("lan-", i), config))
			}
			for _, p := range tt.pools {
				pools = append(pools, string(p))
			}
			answers := map[string]http.HandlerFunc{listAttachments: items(attachments...), "GET ippools": items(pools...), listOfClaims: items()}
			if answers[listSlices] = tt.slices; tt.slices == nil {
				answers[listSlices] = refuse(apierrors.NewNotFound(schema.GroupResource{}, ""))
			}
			_, client := newAPI(t, answers)
			b := NewPools(client, Settings{}, atOnce)
			var listed []ipam.Pool
			for p, err := range b.List(t.Context()) {
				if err == nil {
					listed = append(listed, p)
				}
			}
			got, err := b.Survey(t.Context(), listed)
			if diff := cmp.Diff(tt.want, linesOf(got)); diff != "" {
				t.Errorf("networks (-want +got):\n%s", diff)
			}
			if (err != nil) != (tt.err != "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

// Several NodeSlicePools may have one range, which is why network_name exists. The same address in two
// of them is no duplicate.
func TestAttachmentIsOfTheSlicesThatItNames(t *testing.T) {
	sliced := `, "range": "10.0.0.0/24", "node_slice_size": "/25"`
	_, client := newAPI(t, map[string]http.HandlerFunc{
		listAttachments: items(attachment("plain", single(sliced)), attachment("blue", inBlue(sliced))), listOfClaims: items(),
		"GET ippools": items(), "GET nodeslicepools": items(sliceOfTwo("net"), sliceOfTwo("blue")),
	})
	b := NewPools(client, Settings{}, atOnce)
	for _, err := range b.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	networks, err := b.Survey(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string][]string)
	for _, n := range networks {
		got[n.Name] = n.Attachments
	}
	if diff := cmp.Diff(map[string][]string{"kube-system/net": {"shop/plain"}, "kube-system/blue": {"shop/blue"}}, got); diff != "" {
		t.Errorf("attachments (-want +got):\n%s", diff)
	}
}
