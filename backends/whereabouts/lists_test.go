package whereabouts

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/plugin"
)

// Promise 3, 9. Each list is made once in a round, and in this order: what proves an allocation or
// protects it is listed after it. A backend that is off, or whose list fails, takes nothing from the
// other.
func TestBothBackendsMakeTheirListsTogether(t *testing.T) {
	const (
		reservations = "GET overlappingrangeipreservations"
		pools        = "GET ippools"
	)
	forbidden := refuse(apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "y", errors.New("no such right")))
	unknown := refuse(apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, ""))
	none := items()
	off := func(name string) map[string]policy.Backend {
		return map[string]policy.Backend{name: {Enabled: policy.Off}}
	}
	for name, tt := range map[string]struct {
		policy   map[string]policy.Backend
		answers  [3]http.HandlerFunc // to the lists of reservations, pools and attachments
		calls    []string
		statuses [2]ipam.Status // of Pools and Overlapping
	}{
		"together": {
			nil, [3]http.HandlerFunc{none, none, none},
			[]string{reservations, pools, listAttachments, listSlices}, [2]ipam.Status{ipam.StatusOK, ipam.StatusOK},
		},
		"Overlapping is off": {
			off(OverlappingName), [3]http.HandlerFunc{forbidden, none, none},
			[]string{pools, listAttachments, listSlices}, [2]ipam.Status{ipam.StatusOK, ipam.StatusSkipped},
		},
		"Pools is off": {
			off(PoolsName), [3]http.HandlerFunc{none, none, none},
			[]string{reservations, pools, listAttachments}, [2]ipam.Status{ipam.StatusSkipped, ipam.StatusOK},
		},
		"no reservations": {
			nil, [3]http.HandlerFunc{forbidden, none, none},
			[]string{reservations, pools, listAttachments, listSlices}, [2]ipam.Status{ipam.StatusOK, ipam.StatusFailed},
		},
		"no pools": {
			nil, [3]http.HandlerFunc{none, forbidden, none},
			[]string{reservations, pools, listAttachments, listSlices}, [2]ipam.Status{ipam.StatusFailed, ipam.StatusFailed},
		},
		"not installed": {
			nil, [3]http.HandlerFunc{unknown, unknown, none},
			[]string{reservations, pools}, [2]ipam.Status{ipam.StatusSkipped, ipam.StatusSkipped},
		},
		"no attachments": {
			nil, [3]http.HandlerFunc{none, none, forbidden},
			[]string{reservations, pools, listAttachments, listSlices}, [2]ipam.Status{ipam.StatusOK, ipam.StatusOK},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, client := newAPI(t, map[string]http.HandlerFunc{reservations: tt.answers[0], pools: tt.answers[1], listAttachments: tt.answers[2]})
			p := policy.Default()
			p.Backends = tt.policy
			opened, _, err := plugin.Open(t.Context(), Plugins(), plugin.Env{Client: client}, p)
			if err != nil {
				t.Fatal(err)
			}
			var enabled []ipam.Backend
			for _, b := range opened {
				if p.Backends[b.Name()].Enabled != policy.Off {
					enabled = append(enabled, b)
				}
			}
			for range 2 { // rounds
				a.answer(pools, tt.answers[1])
				statuses := [2]ipam.Status{ipam.StatusSkipped, ipam.StatusSkipped}
				for _, l := range ipam.TakeInventory(t.Context(), enabled, func(string) bool { return false }).Listings {
					statuses[map[string]int{PoolsName: 0, OverlappingName: 1}[l.Backend]] = l.Status
				}
				if statuses != tt.statuses {
					t.Errorf("the listings are %v, want %v", statuses, tt.statuses)
				}
				calls := a.calls()
				slices.Sort(calls[slices.Index(calls, pools)+1:]) // these are made at the same time
				if diff := cmp.Diff(tt.calls, calls); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			}
		})
	}
}
