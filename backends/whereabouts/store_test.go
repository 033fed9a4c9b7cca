package whereabouts

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

func TestListStatuses(t *testing.T) {
	forbidden := apierrors.NewForbidden(poolResources, "", errors.New("no such right"))
	for _, tt := range []struct {
		name         string
		answer       http.HandlerFunc
		notInstalled bool
		says         string
	}{
		// The API server's answer if it has no such resource.
		{"no CRD", plain(http.StatusNotFound), true, "no ippools.whereabouts.cni.cncf.io"},
		{"forbidden", refuse(forbidden), false, "no such right"},
		{"empty object", say("{}"), false, "not a list"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, client := newAPI(t, map[string]http.HandlerFunc{"GET ippools": tt.answer})
			got, err := list(t.Context(), client, poolResource)
			if err == nil || got != nil {
				t.Fatalf("list = %s, %v, want nothing and an error", got, err)
			}
			if is := errors.Is(err, ipam.ErrNotInstalled); is != tt.notInstalled {
				t.Errorf("list: %v: is ErrNotInstalled = %v, want %v", err, is, tt.notInstalled)
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("list: %v, want %q in it", err, tt.says)
			}
			if tt.notInstalled && len(a.calls()) != 1 {
				t.Errorf("%d requests, want 1 and no repetition", len(a.calls()))
			}
		})
	}
}
