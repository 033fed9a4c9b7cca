package whereabouts

import (
	"errors"
	"net/http"
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

// Promise 2, 9. Only the API server itself can say that it serves no network attachments. If it is not known
// which there are, how full networks are is unknown. That fails no listing.
func TestAttachmentsListStatuses(t *testing.T) {
	const ours, theirs = "whereabouts.cni.cncf.io/v1alpha1", "k8s.cni.cncf.io/v1"
	attachments := schema.GroupResource{Group: attachmentGroup, Resource: attachmentResource}
	forbidden := refuse(apierrors.NewForbidden(attachments, "", errors.New("no such right")))
	some := items(attachment("lan", single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.4"]`)))
	for _, tt := range []struct {
		name   string
		list   http.HandlerFunc
		groups http.HandlerFunc
		want   string // how many addresses pods can get
		fails  string // a part of the error of the survey
	}{
		{"some", some, nil, "253", ""},
		{"none", items(), nil, "254", ""},
		{"not defined", plain(http.StatusNotFound), groups("apps/v1", ours), "254", ""},
		{"another version defined", plain(http.StatusNotFound), groups(ours, "k8s.cni.cncf.io/v1beta2"), "254", ""},
		{"not found, but served", plain(http.StatusNotFound), groups(ours, theirs), "unknown", "although the API server serves k8s.cni.cncf.io/v1"},
		{"a proxy knows no such path", plain(http.StatusNotFound), plain(http.StatusNotFound), "unknown", "reason unknown"},
		{"groups of another server", plain(http.StatusNotFound), groups("apps/v1"), "unknown", "reason unknown"},
		{"no groups", plain(http.StatusNotFound), say(`{}`), "unknown", "reason unknown"},
		{"groups forbidden", plain(http.StatusNotFound), forbidden, "unknown", "no such right"},
		{"forbidden", forbidden, nil, "unknown", "no such right"},
		{"broken", broken, nil, "unknown", "etcd is gone"},
		{"not a list", say("{}"), nil, "unknown", "not a list"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, client := newAPI(t, map[string]http.HandlerFunc{
				"GET ippools": items(leakyPool), "GET overlappingrangeipreservations": items(leaked),
				listAttachments: tt.list, getGroups: tt.groups, listSlices: items(),
			})
			pools := NewPools(client, Settings{}, atOnce)
			var listed []ipam.Pool
			for _, b := range []ipam.Backend{NewOverlapping(client, Settings{}, atOnce), pools} {
				listed = nil
				for pool, err := range b.List(t.Context()) {
					if err != nil {
						t.Errorf("%s: %v", b.Name(), err)
					}
					listed = append(listed, pool)
				}
				if len(listed) != 1 || len(listed[0].Allocations) == 0 {
					t.Errorf("%s: listed are %+v", b.Name(), listed)
				}
			}
			networks, err := pools.Survey(t.Context(), listed)
			got := linesOf(networks)
			if len(got) != 1 || !strings.Contains(got[0], " "+tt.want+" ") {
				t.Errorf("networks %q, want one with %s addresses", got, tt.want)
			}
			if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("the survey ends with %v, want %q", err, tt.fails)
			}
		})
	}
}
