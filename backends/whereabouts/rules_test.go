package whereabouts

import (
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// An attachment may give out addresses of a pool though its configuration does not say so: that may be in a
// file on the nodes, or be given up. A rule that holds what is of the attachment holds the pool, and a
// rule that ends the grace period of another attachment's pool does not.
func TestRulesForAttachmentsWhoseRangesAreUnknown(t *testing.T) {
	fast := attachment("fast", single(`, "range": "10.0.0.0/24"`))
	for _, tt := range []struct {
		name  string
		other string // attachment shop/other
		may   bool   // give addresses of the pool
	}{
		{"in a file on the nodes", attachment("other", ""), true},
		{"a file on the nodes may have the range", attachment("other", single("")), true},
		{"its name may be that of a file", attachment("other", "lan.conflist"), true},
		{"no range can be read", attachment("other", `{"type": "whereabouts"`), true},
		{"another range", attachment("other", single(`, "range": "10.1.0.0/24"`)), false},
		{"another plugin", attachment("other", `{"type": "macvlan", "ipam": {"type": "static"}}`), false},
		{"without IPAM", attachment("other", `{"type": "macvlan"}`), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			verdict := func(rule policy.Rule) judge.Decision {
				_, client := newAPI(t, map[string]http.HandlerFunc{
					"GET ippools": items(`{"metadata": {"namespace": "kube-system", "name": "10.0.0.0-24"}, "spec": {"range": "10.0.0.0/24",
						"allocations": {"5": {"id": "c5", "podref": "shop/gone", "ifname": "net1"}}}}`),
					listAttachments: items(fast, tt.other), listOfClaims: items(), listSlices: refuse(apierrors.NewNotFound(schema.GroupResource{}, "")),
				})
				b := NewPools(client, Settings{}, atOnce)
				inv := ipam.TakeInventory(t.Context(), []ipam.Backend{b}, func(string) bool { return false })
				l := &inv.Listings[0]
				networks, err := b.Survey(t.Context(), l.Pools)
				if err != nil {
					t.Fatal(err)
				}
				l.Networks, l.Surveyed = networks, true
				p := policy.Default()
				p.MinAge.Duration, p.Rules = 0, []policy.Rule{rule}
				c, err := census.Take(t.Context(), &backendtest.Pods{}, census.Scope{})
				if err != nil {
					t.Fatal(err)
				}
				return judge.Judge(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC), p, inv, c, ledger.Ledger{})[0]
			}
			held := verdict(policy.Rule{Match: policy.Match{Pools: []string{"shop/other"}}, Hold: true})
			if got := held.Reason == judge.RuleHold; got != tt.may {
				t.Errorf("a rule that holds what is of shop/other holds it: %t (%s), want %t", got, held.Reason, tt.may)
			}
			early := verdict(policy.Rule{Match: policy.Match{Pools: []string{"shop/fast"}}, GracePeriod: new(policy.Duration{})})
			if got := early.Verdict == judge.Orphaned; got == tt.may {
				t.Errorf("a rule without a grace period for shop/fast releases it: %t (%s %s), want %t", got, early.Reason, early.Note, !tt.may)
			}
		})
	}
}
