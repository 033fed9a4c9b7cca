package whereabouts

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

const getGroups = "GET /apis"

// groups answers with API groups, each written as group/version.
func groups(versions ...string) http.HandlerFunc {
	var all []string
	for _, version := range versions {
		all = append(all, `{"name": "x", "versions": [{"groupVersion": "`+version+`", "version": "x"}]}`)
	}
	return say(`{"kind": "APIGroupList", "apiVersion": "v1", "groups": [` + strings.Join(all, ",") + `]}`)
}

// Promise 2. Only the API server itself can say that it serves no network
// attachments.
func TestAttachmentsListStatuses(t *testing.T) {
	const ours, theirs = "whereabouts.cni.cncf.io/v1alpha1", "k8s.cni.cncf.io/v1"
	attachments := schema.GroupResource{Group: attachmentGroup, Resource: attachmentResource}
	forbidden := refuse(apierrors.NewForbidden(attachments, "", errors.New("no such right")))
	some := items(attachment("lan", single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.4"]`)))
	for _, tt := range []struct {
		name   string
		list   http.HandlerFunc
		groups http.HandlerFunc
		want   string // the protection of 10.0.0.4
		fails  string // a part of the error
	}{
		{"some", some, nil, "excluded by the network attachment shop/lan", ""},
		{"none", items(), nil, "", ""},
		{"not defined", plain(http.StatusNotFound), groups("apps/v1", ours), "", ""},
		{"another version defined", plain(http.StatusNotFound), groups(ours, "k8s.cni.cncf.io/v1beta2"), "", ""},
		{"not found, but served", plain(http.StatusNotFound), groups(ours, theirs), "", "although the API server serves k8s.cni.cncf.io/v1"},
		{"a proxy knows no such path", plain(http.StatusNotFound), plain(http.StatusNotFound), "", "reason unknown"},
		{"groups of another server", plain(http.StatusNotFound), groups("apps/v1"), "", "reason unknown"},
		{"no groups", plain(http.StatusNotFound), say(`{}`), "", "reason unknown"},
		{"groups forbidden", plain(http.StatusNotFound), forbidden, "", "no such right"},
		{"forbidden", forbidden, nil, "", "no such right"},
		{"broken", broken, nil, "", "etcd is gone"},
		{"not a list", say("{}"), nil, "", "not a list"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, client := newAPI(t, map[string]http.HandlerFunc{
				"GET ippools": items(leakyPool), "GET overlappingrangeipreservations": items(leaked),
				listAttachments: tt.list, getGroups: tt.groups,
			})
			for _, b := range []ipam.Backend{NewPools(client, Settings{}, atOnce), NewOverlapping(client, Settings{}, atOnce)} {
				var got, fails []string
				for pool, err := range b.List(t.Context()) {
					if err != nil {
						fails = append(fails, err.Error())
					}
					for _, r := range pool.Allocations {
						if r.IP.String() == "10.0.0.4" {
							got = append(got, r.Protected)
						} else if r.Protected != "" {
							t.Errorf("%s is protected", r.IP)
						}
					}
				}
				switch {
				case tt.fails == "" && (fails != nil || !slices.Equal(got, []string{tt.want})):
					t.Errorf("%s: protected by %q, %q, want %q", b.Name(), got, fails, tt.want)
				case tt.fails != "" && (len(fails) != 1 || got != nil || !strings.Contains(fails[0], tt.fails)):
					t.Errorf("%s: protected by %q, %q, want nothing and an error with %q", b.Name(), got, fails, tt.fails)
				}
			}
		})
	}
}

// Promise 2. A range whose configuration was not kept may exclude the address that a restore would
// put back, unless another attachment gives it.
func TestRestoreRefusesWhatAnUnreadConfigurationMayExclude(t *testing.T) {
	ip, in := netip.MustParseAddr("10.0.0.4"), netip.MustParsePrefix("10.0.0.0/24")
	unread := attachedRange{from: in, anyNetwork: true, broken: errUnread}
	read := attachedRange{from: in, first: in.Addr(), last: netip.MustParseAddr("10.0.0.255")}
	if err := checkGiven(ip, []attachedRange{unread}); !errors.Is(err, errUnread) {
		t.Errorf("%v, want that it may be excluded", err)
	}
	if err := checkGiven(ip, []attachedRange{unread, read}); err != nil {
		t.Errorf("%v, want that another attachment gives it", err)
	}
}
