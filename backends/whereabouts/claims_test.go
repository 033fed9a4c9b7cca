package whereabouts

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

const listOfClaims = "GET /apis/k8s.cni.cncf.io/v1alpha1/ipamclaims"

// claim returns an IPAMClaim.
func claim(namespace, name string) string {
	return `{"apiVersion": "k8s.cni.cncf.io/v1alpha1", "kind": "IPAMClaim", "metadata": {"namespace": "` + namespace + `", "name": "` + name + `"}}`
}

// claimed returns a pool and an overlapping reservation with a value of ipamclaimref.
func claimed(value string) (pool, overlapping string) {
	fields := `"podref":"default/virt-launcher-vm-abcde","ifname":"net1","ipamclaimref":` + value
	return `{"metadata": {"namespace": "kube-system", "name": "10.0.0.0-24"}, "spec": {"range": "10.0.0.0/24",
		"allocations": {"4": {"id":"c4",` + fields + `}}}}`, overlappingJSON("10.0.0.4", `{`+fields+`}`, `{}`)
}

// noteOfProtection returns the protection of the only allocation of each backend.
func noteOfProtection(t *testing.T, backends ...ipam.Backend) []string {
	t.Helper()
	var all []string
	for _, b := range backends {
		for pool, err := range b.List(t.Context()) {
			if err != nil {
				t.Fatalf("%s: %v", b.Name(), err)
			}
			if a := pool.Allocations[0]; a.Unreadable+a.UnknownField != "" {
				t.Errorf("%s: %+v, want it readable", b.Name(), a)
			}
			all = append(all, pool.Allocations[0].Protected)
		}
	}
	return all
}

// Promise 2. The address of a stopped virtual machine stays while its claim exists, or may
// exist.
func TestAddressOfAClaimIsProtected(t *testing.T) {
	claims := schema.GroupResource{Group: attachmentGroup, Resource: claimResource}
	some := items(claim("other", "vm"), claim("default", "vm.lan"))
	for _, tt := range []struct {
		name  string
		value string // of ipamclaimref
		list  http.HandlerFunc
		want  []string // parts of the protection; none if there is no protection
	}{
		{"it exists", `"default/vm.lan"`, some, []string{"IPAMClaim default/vm.lan exists"}},
		{"it is gone", `"default/vm"`, some, nil},
		{"there is none", `"default/vm"`, items(), nil},
		{"forbidden", `"default/vm"`, refuse(apierrors.NewForbidden(claims, "", errors.New("no such right"))),
			[]string{"IPAMClaim default/vm", "no such right", "grant list on ipamclaims.k8s.cni.cncf.io"}},
		{"not served", `"default/vm"`, plain(http.StatusNotFound),
			[]string{"IPAMClaim default/vm", "does not serve ipamclaims.k8s.cni.cncf.io/v1alpha1", "install"}},
		{"broken", `"default/vm"`, broken, []string{"IPAMClaim default/vm", "etcd is gone"}},
		{"one cannot be decoded", `"default/vm"`, items(`{"metadata": []}`), []string{"IPAMClaim default/vm", "could not be listed: decode IPAMClaim"}},
		{"no namespace", `"vm"`, nil, []string{`IPAMClaim "vm"`, "not namespace/name", "correct ipamclaimref"}},
		{"empty", `""`, nil, nil},
		{"null", `null`, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pool, overlapping := claimed(tt.value)
			answers := map[string]http.HandlerFunc{
				"GET ippools": items(pool), "GET overlappingrangeipreservations": items(overlapping),
			}
			if tt.list != nil {
				answers[listOfClaims] = tt.list
			}
			_, client := newAPI(t, answers)
			got := noteOfProtection(t, NewPools(client, Settings{}, atOnce), NewOverlapping(client, Settings{}, atOnce))
			if len(got) != 2 || got[0] != got[1] || (got[0] != "") != (tt.want != nil) {
				t.Fatalf("protected by %q, want both by %q", got, tt.want)
			}
			for _, part := range tt.want {
				if !strings.Contains(got[0], part) {
					t.Errorf("protected by %q, want %q in it", got[0], part)
				}
			}
		})
	}
}

// Promise 3. A claim that is made before its allocation is listed is in the list.
func TestClaimsAreListedAfterTheAllocationsAndOnlyIfNeeded(t *testing.T) {
	for value, claims := range map[string]int{`"default/vm"`: 1, `""`: 0} {
		pool, overlapping := claimed(value)
		a, client := newAPI(t, map[string]http.HandlerFunc{
			"GET ippools": items(pool, pool), "GET overlappingrangeipreservations": items(overlapping, overlapping),
			listOfClaims: items(),
		})
		for _, b := range []ipam.Backend{NewPools(client, Settings{}, atOnce), NewOverlapping(client, Settings{}, atOnce)} {
			a.answer("", nil)
			noteOfProtection(t, b)
			calls := a.calls()
			if len(a.bodies(listOfClaims)) != claims || claims > 0 && calls[len(calls)-1] != listOfClaims {
				t.Errorf("%s: requests %q, want %d lists of claims at the end", b.Name(), calls, claims)
			}
		}
	}
}

// A name with an escape is the same name.
func TestClaimIsFoundUnderAnEscapedName(t *testing.T) {
	if got := claimOf(`{"podref":"a/b","ipamclaimr\u0065f":"default/vm"}`); got != "default/vm" {
		t.Errorf("claimOf = %q, want default/vm", got)
	}
}

// wholeDump ends a dump that has every list.
var wholeDump = ipam.Document{APIVersion: "ip-reaper/v1alpha1", Kind: ipam.DumpKind, List: true}

func TestFilesRespectClaims(t *testing.T) {
	pool, overlapping := claimed(`"default/vm"`)
	stored := []ipam.Document{document("IPPool", pool), document("OverlappingRangeIPReservation", overlapping), wholeDump}
	given := func(data string) ipam.Document {
		return ipam.Document{APIVersion: "k8s.cni.cncf.io/v1alpha1", Kind: "IPAMClaim", Data: []byte(data)}
	}
	for _, tt := range []struct {
		name   string
		claims []ipam.Document
		want   string // a part of the protection; empty: none
	}{
		{"it exists", []ipam.Document{given(claim("default", "vm"))}, "IPAMClaim default/vm exists"},
		{"another exists", []ipam.Document{given(claim("default", "other"))}, ""},
		{"no claim at all", nil, "kubectl get ipamclaims -A -o yaml"},
		{"an empty list", []ipam.Document{{APIVersion: "k8s.cni.cncf.io/v1alpha1", Kind: "IPAMClaimList", List: true}}, ""},
		{"a part of a list", []ipam.Document{given(claim("default", "other")), {APIVersion: "k8s.cni.cncf.io/v1alpha1", Kind: "IPAMClaimList", List: true, More: true}},
			"kubectl get ipamclaims -A -o yaml"},
		{"unreadable", []ipam.Document{given(`{"metadata": 7}`)}, "could not be listed: decode IPAMClaim"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, _ := overFiles(t, policy.Default(), append(slices.Clone(stored), tt.claims...)...)
			notes := noteOfProtection(t, found...)
			if len(notes) != 2 {
				t.Fatalf("protected by %q, want an entry and its reservation", notes)
			}
			for _, got := range notes {
				if !strings.Contains(got, tt.want) || (got != "") != (tt.want != "") {
					t.Errorf("protected by %q, want %q", got, tt.want)
				}
			}
		})
	}
}
