package secondring_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

const (
	retained  = "held Retained kept"
	suspected = "suspected PodAbsent kept"
	released  = "orphan PodAbsent released"
)

// A pod that its StatefulSet is bringing back keeps its address, however long it is
// gone. It is the set of today that counts, whenever that was made; and who is
// wanted no more waits for the whole grace period from then on.
func TestAddressesOfStatefulSetsAreJudgedByTheSetOfToday(t *testing.T) {
	s := newScene(t)
	s.network = wide
	for set, replicas := range map[string]int32{"stays": 2, "scaled": 2, "deleted": 1, "fewer": 2, "more": 2, "moved": 2} {
		s.createSet(set, replicas, 0)
	}
	for _, pod := range []string{"stays-0", "stays-1", "scaled-1", "deleted-0", "fewer-1", "more-2", "moved-0", "moved-6", "free-0", "stays-01"} {
		s.leak(pod)
	}
	s.wantSaid(s.reap(reap.ExitDone, patient).Report, decisions{
		"stays-0": retained, "stays-1": retained, "scaled-1": retained, "deleted-0": retained, "fewer-1": retained,
		"more-2": suspected, "moved-0": retained, "moved-6": suspected, "free-0": suspected, "stays-01": suspected,
	})
	s.pass(time.Hour)

	s.scale("scaled", 1)
	s.deleteSet("deleted")
	for _, set := range []struct {
		name            string
		replicas, start int32
	}{{"fewer", 1, 0}, {"more", 3, 0}, {"moved", 2, 5}} {
		s.deleteSet(set.name)
		s.createSet(set.name, set.replicas, set.start)
	}
	s.wantSaid(s.reap(reap.ExitDone, patient).Report, decisions{
		"stays-0": retained, "stays-1": retained, "scaled-1": suspected, "deleted-0": suspected, "fewer-1": suspected,
		"more-2": retained, "moved-0": suspected, "moved-6": retained, "free-0": released, "stays-01": released,
	})
	s.pass(time.Hour)

	kept := decisions{"stays-0": retained, "stays-1": retained, "more-2": retained, "moved-6": retained}
	s.wantSaid(s.reap(reap.ExitDone, patient).Report, with(kept, decisions{
		"scaled-1": released, "deleted-0": released, "fewer-1": released, "moved-0": released,
	}))
	s.wantSaid(s.reap(reap.ExitDone, atOnce).Report, kept)
	s.wantSaid(s.reap(reap.ExitDone, atOnce+"protection: {statefulSets: ignore}\n").Report, decisions{
		"stays-0": released, "stays-1": released, "more-2": released, "moved-6": released,
	})
}

// with are the verdicts of both.
func with(these, others decisions) decisions {
	all := decisions{}
	for _, some := range []decisions{these, others} {
		for name, decision := range some {
			all[name] = decision
		}
	}
	return all
}

// createSet creates a StatefulSet of the shop. There is no controller.
func (s *scene) createSet(name string, replicas, start int32) {
	s.Helper()
	labels := map[string]string{"app": name}
	_, err := s.Kube.AppsV1().StatefulSets(shop).Create(s.Context(), &appsv1.StatefulSet{
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
	s.must(err)
}

// scale sets the number of replicas, as kubectl scale does.
func (s *scene) scale(name string, replicas int32) {
	s.Helper()
	sets := s.Kube.AppsV1().StatefulSets(shop)
	scale, err := sets.GetScale(s.Context(), name, metav1.GetOptions{})
	s.must(err)
	scale.Spec.Replicas = replicas
	_, err = sets.UpdateScale(s.Context(), name, scale, metav1.UpdateOptions{})
	s.must(err)
}

// deleteSet deletes a StatefulSet, as kubectl delete --cascade=orphan does.
func (s *scene) deleteSet(name string) {
	s.Helper()
	s.must(s.Kube.AppsV1().StatefulSets(shop).Delete(s.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}))
}
