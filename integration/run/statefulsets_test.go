package run_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

const retained = "held Retained kept"

// A pod that its StatefulSet is bringing back keeps its address, however long it is
// gone. It is the set of today that counts, whenever that was made; and who is
// wanted no more waits for the whole grace period from then on.
func TestAddressesOfStatefulSetsAreJudgedByTheSetOfToday(t *testing.T) {
	f := newFixture(t)
	f.network = wide
	for set, replicas := range map[string]int32{"stays": 2, "scaled": 2, "deleted": 1, "fewer": 2, "more": 2, "moved": 2} {
		f.createSet(set, replicas, 0)
	}
	for _, pod := range []string{"stays-0", "stays-1", "scaled-1", "deleted-0", "fewer-1", "more-2", "moved-0", "moved-6", "free-0", "stays-01"} {
		f.leak(pod)
	}
	f.wantSaid(f.reap(reap.ExitDone, patient).Report, decisions{
		"stays-0": retained, "stays-1": retained, "scaled-1": retained, "deleted-0": retained, "fewer-1": retained,
		"more-2": suspected, "moved-0": retained, "moved-6": suspected, "free-0": suspected, "stays-01": suspected,
	})
	f.pass(time.Hour)

	f.scale("scaled", 1)
	f.deleteSet("deleted")
	for _, set := range []struct {
		name            string
		replicas, start int32
	}{{"fewer", 1, 0}, {"more", 3, 0}, {"moved", 2, 5}} {
		f.deleteSet(set.name)
		f.createSet(set.name, set.replicas, set.start)
	}
	f.wantSaid(f.reap(reap.ExitDone, patient).Report, decisions{
		"stays-0": retained, "stays-1": retained, "scaled-1": suspected, "deleted-0": suspected, "fewer-1": suspected,
		"more-2": retained, "moved-0": suspected, "moved-6": retained, "free-0": released, "stays-01": released,
	})
	f.pass(time.Hour)

	kept := decisions{"stays-0": retained, "stays-1": retained, "more-2": retained, "moved-6": retained}
	f.wantSaid(f.reap(reap.ExitDone, patient).Report, both(kept, decisions{
		"scaled-1": released, "deleted-0": released, "fewer-1": released, "moved-0": released,
	}))
	f.wantSaid(f.reap(reap.ExitDone, atOnce).Report, kept)
	f.wantSaid(f.reap(reap.ExitDone, atOnce+"protection: {statefulSets: ignore}\n").Report, decisions{
		"stays-0": released, "stays-1": released, "more-2": released, "moved-6": released,
	})
}

// both are the decisions of both.
func both(these, others decisions) decisions {
	all := decisions{}
	for _, some := range []decisions{these, others} {
		for name, decision := range some {
			all[name] = decision
		}
	}
	return all
}

// createSet creates a StatefulSet of the shop. There is no controller.
func (f *fixture) createSet(name string, replicas, start int32) {
	f.Helper()
	labels := map[string]string{"app": name}
	_, err := f.Kube.AppsV1().StatefulSets(shop).Create(f.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas,
			Ordinals: &appsv1.StatefulSetOrdinals{Start: start},
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.invalid/main:1"}}},
			},
		},
	}, metav1.CreateOptions{})
	f.must(err)
}

// scale sets the number of replicas, as kubectl scale does.
func (f *fixture) scale(name string, replicas int32) {
	f.Helper()
	sets := f.Kube.AppsV1().StatefulSets(shop)
	scale, err := sets.GetScale(f.Context(), name, metav1.GetOptions{})
	f.must(err)
	scale.Spec.Replicas = replicas
	_, err = sets.UpdateScale(f.Context(), name, scale, metav1.UpdateOptions{})
	f.must(err)
}

// deleteSet deletes a StatefulSet, as kubectl delete --cascade=orphan does.
func (f *fixture) deleteSet(name string) {
	f.Helper()
	f.must(f.Kube.AppsV1().StatefulSets(shop).Delete(f.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}))
}
