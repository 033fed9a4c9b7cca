package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// lacking makes the lists of pods lack some pods, as those of a watch cache do that has lost an
// event (kubernetes issue 123072), or those of a proxy that filters lists.
func lacking(names ...string) func(runtime.Object) {
	return func(o runtime.Object) {
		if list, ok := o.(*corev1.PodList); ok {
			list.Items = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return slices.Contains(names, pod.Name) })
		}
	}
}

// older makes the pods that are read by name an hour older.
func older(o runtime.Object) {
	if pod, ok := o.(*corev1.Pod); ok {
		pod.CreationTimestamp = metav1.NewTime(pod.CreationTimestamp.Add(-time.Hour))
	}
}

// Promise 1. No list shows a pod that runs. Its owner is read by name, however many are due, so it
// keeps its address. If the pod is older than the list that lacks it, the lists are not believed
// any more, and nothing else goes either: the next pod that they lack may have any address.
func TestPodThatListsLackKeepsItsAddress(t *testing.T) {
	const leaks = 60
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprintf("old %v", old), func(t *testing.T) {
			f := newFixture(t)
			for i := range leaks {
				f.leak(fmt.Sprint("gone-", i))
			}
			f.live("kept")
			before := f.owners()
			f.toReaper.Edit(proxy.On("list pods"), lacking("kept"))
			code, want := reap.ExitDone, leaks
			if old {
				f.toReaper.Edit(proxy.On("get pods"), older)
				code, want = reap.ExitPartial, 0
			}
			r := f.reap(code, atOnce, "--unsafe-ignore-limit=maxFraction", "-o", "json")
			if r.Report.Summary.Released != want {
				t.Errorf("%d released, want %d", r.Report.Summary.Released, want)
			}
			told := slices.ContainsFunc(r.Report.Warnings, func(w string) bool { return strings.Contains(w, "lists of this API server lack pods: pod shop/kept") })
			if told != old {
				t.Errorf("the warnings are %q", r.Report.Warnings)
			}
			for ip, owner := range f.owners() {
				if before[ip] != owner {
					t.Errorf("%s belongs to %s, want %s", ip, owner, before[ip])
				}
				delete(before, ip)
			}
			if len(before) != want {
				t.Errorf("%d addresses are gone, want %d: %v", len(before), want, before)
			}
			for _, owner := range before {
				if strings.Contains(owner, "kept") {
					t.Error("the address of the pod that runs is gone")
				}
			}
		})
	}
}

// Promise 1. Between the census and the second look, the API server is replaced by an empty one, or
// by that of another cluster: every owner looks absent there, and so does a pod that ran.
func TestServerThatWasSwappedReleasesNothing(t *testing.T) {
	f := newFixture(t)
	for i := range 3 {
		f.leak(fmt.Sprint("gone-", i))
	}
	before := f.owners()
	f.toReaper.Edit(proxy.On("list pods"), func(o runtime.Object) {
		list, _ := o.(*corev1.PodList)
		list.Items = append(list.Items, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "elsewhere", UID: "of-another-cluster"},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.9.9.9", PodIPs: []corev1.PodIP{{IP: "10.9.9.9"}}},
		})
		list.Items = list.Items[len(list.Items)-1:]
	})
	r := f.reap(reap.ExitPartial, atOnce, "--unsafe-ignore-limit=maxFraction", "-o", "json")
	if r.Report.Summary.Released > 0 || len(f.owners()) != len(before) {
		t.Errorf("released %d, and %v are left of %v", r.Report.Summary.Released, f.owners(), before)
	}
	if r.Report.Summary.Failed == 0 {
		t.Error("nothing failed")
	}
	for _, e := range r.Report.Entries {
		if e.Outcome == "failed" && !strings.Contains(e.Error, "none of these pods exists any more, although all ran when the pods were listed: shop/elsewhere") {
			t.Errorf("%s: %s", e.IP, e.Error)
		}
	}
}
