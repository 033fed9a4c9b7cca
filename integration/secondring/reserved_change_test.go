package secondring_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A reservation object is somebody's, and goes only as it was listed, and after the
// address (promises 1, 4 and 7).
func TestAllocationStaysWhereSomethingHappensToIt(t *testing.T) {
	const changed = "orphan PodAbsent changed"
	for _, tt := range []struct {
		name string
		at   proxy.Match
		do   func(*scene) proxy.Action
		exit int
		want decisions
		then decisions // in the next run
	}{
		{"it is changed", proxy.On(deletion), func(s *scene) proxy.Action { s.label("web"); return proxy.Pass() }, reap.ExitDone,
			decisions{"web-0": released, "object web": changed}, decisions{"object web": released}},
		{"it is another one", proxy.On(deletion), func(s *scene) proxy.Action { s.remake("web"); return proxy.Pass() }, reap.ExitDone,
			decisions{"web-0": released, "object web": changed}, decisions{"object web": released}},
		{"it is gone", proxy.On(deletion), func(s *scene) proxy.Action { s.drop("web"); return proxy.Pass() }, reap.ExitDone,
			decisions{"web-0": released, "object web": released}, decisions{}},
		{"its pod comes back", proxy.On("patch ippools"), func(s *scene) proxy.Action { s.pod("web-0"); return proxy.Pass() }, reap.ExitDone,
			decisions{"web-0": released, "object web": "orphan PodAbsent returned"}, decisions{"object web": present}},
		{"its address cannot be released", proxy.On("patch ippools"), func(*scene) proxy.Action { return proxy.Forbidden() }, reap.ExitPartial,
			decisions{"web-0": "orphan PodAbsent failed", "object web": "orphan PodAbsent kept"}, decisions{"web-0": released, "object web": released}},
		{"its address is somebody's", proxy.On("patch ippools"), func(s *scene) proxy.Action { s.again("web-0", "next"); return proxy.Pass() }, reap.ExitDone,
			decisions{"web-0": "orphan PodAbsent changed", "object web": "orphan PodAbsent kept"}, decisions{"web-0": released, "object web": released}},
		{"it may not be deleted", proxy.On(deletion), func(*scene) proxy.Action { return proxy.Forbidden() }, reap.ExitPartial,
			decisions{"web-0": released, "object web": "orphan PodAbsent failed"}, decisions{"object web": released}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			s.leak("web-0")
			s.reserve("ReservedIP", "web", expired())
			s.toReaper.Before(proxy.Nth(1, tt.at), func(context.Context, proxy.Request) proxy.Action { return tt.do(s) })
			s.wantSaid(s.reap(tt.exit, atOnce+allocations).Report, tt.want)
			if len(tt.then) > 0 {
				s.wantObjects("web")
			}
			s.toReaper.Reset()
			s.wantSaid(s.reap(reap.ExitDone, atOnce+allocations).Report, tt.then)
		})
	}
}

// label changes nothing of an object that the reaper reads. Like the next two, it is
// called by hooks.
func (s *scene) label(name string) {
	_, err := s.objects("ReservedIP").Patch(s.Context(), name, "application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"mine":"yes"}}}`), metav1.PatchOptions{})
	if err != nil {
		s.Error(err)
	}
}

// drop deletes an object.
func (s *scene) drop(name string) {
	if err := s.objects("ReservedIP").Delete(s.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		s.Error(err)
	}
}

// remake deletes an object, and creates one of the same name that reads the same.
func (s *scene) remake(name string) {
	s.drop(name)
	if err := s.tryReserve("ReservedIP", name, expired()); err != nil {
		s.Error(err)
	}
}

// expired are the fields of an object that kept the addresses of a pod until an hour
// ago.
func expired() string {
	return fmt.Sprintf(`"spec":{"pod":"web-0","ttl":"1h"},"status":{"deletedAt":%q}`, ago(2*time.Hour))
}
