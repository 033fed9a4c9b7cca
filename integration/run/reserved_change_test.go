package run_test

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

// An object goes only as it was listed, and after the address that it kept (promises 1, 4
// and 7).
func TestReservedIPStaysWhereSomethingHappensToIt(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   proxy.Match
		do   func(*fixture) proxy.Action
		exit int
		want decisions
		then decisions // in the next run
	}{
		{"it is changed", proxy.On(deletion), func(f *fixture) proxy.Action { f.label("web"); return proxy.Pass() }, reap.ExitDone,
			decisions{"web-0": released, "object web": changed}, decisions{"object web": released}},
		{"it is another one", proxy.On(deletion), func(f *fixture) proxy.Action { f.remake("web"); return proxy.Pass() }, reap.ExitDone,
			decisions{"web-0": released, "object web": changed}, decisions{"object web": released}},
		{"it is gone", proxy.On(deletion), func(f *fixture) proxy.Action { f.drop("web"); return proxy.Pass() }, reap.ExitDone,
			decisions{"web-0": released, "object web": released}, decisions{}},
		{"its address is another sandbox's", proxy.On("patch ippools"), func(f *fixture) proxy.Action { f.again("web-0", "next"); return proxy.Pass() }, reap.ExitDone,
			decisions{"web-0": "orphan PodAbsent changed", "object web": spared}, decisions{"web-0": released, "object web": released}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.leak("web-0")
			f.reserve("ReservedIP", "web", expired())
			f.toReaper.Before(proxy.Nth(1, tt.at), func(context.Context, proxy.Request) proxy.Action { return tt.do(f) })
			f.wantSaid(f.reap(tt.exit, atOnce+reservedIPs).Report, tt.want)
			if len(tt.then) > 0 {
				f.wantObjects("web")
			}
			f.toReaper.Reset()
			f.wantSaid(f.reap(reap.ExitDone, atOnce+reservedIPs).Report, tt.then)
		})
	}
}

// label changes nothing of an object that the reaper reads. Like the next two, it is
// called by hooks.
func (f *fixture) label(name string) {
	_, err := f.objects("ReservedIP").Patch(f.Context(), name, "application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"mine":"yes"}}}`), metav1.PatchOptions{})
	if err != nil {
		f.Error(err)
	}
}

// drop deletes an object.
func (f *fixture) drop(name string) {
	if err := f.objects("ReservedIP").Delete(f.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		f.Error(err)
	}
}

// remake deletes an object, and creates one of the same name that reads the same.
func (f *fixture) remake(name string) {
	f.drop(name)
	if err := f.tryReserve("ReservedIP", name, expired()); err != nil {
		f.Error(err)
	}
}

// expired are the fields of an object that kept the addresses of a pod until an hour
// ago.
func expired() string {
	return fmt.Sprintf(`"spec":{"pod":"web-0","ttl":"1h"},"status":{"deletedAt":%q}`, ago(2*time.Hour))
}
