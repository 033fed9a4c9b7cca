package run_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

const retained = "held Retained kept"

// A pod that its StatefulSet is bringing back keeps its address, by the replicas and the first
// ordinal of the real object.
func TestAddressesOfStatefulSetsAreKept(t *testing.T) {
	f := newFixture(t)
	f.network = wide
	f.createSet("stays", 2, 0)
	f.createSet("moved", 2, 5)
	for _, pod := range []string{"stays-0", "stays-1", "stays-2", "moved-0", "moved-6", "free-0"} {
		f.leak(pod)
	}
	f.wantSaid(f.reap(reap.ExitDone, patient).Report, decisions{
		"stays-0": retained, "stays-1": retained, "stays-2": suspected, "moved-0": suspected, "moved-6": retained, "free-0": suspected,
	})
	f.wantSaid(f.reap(reap.ExitDone, atOnce+"protection: {statefulSets: ignore}\n").Report, decisions{
		"stays-0": released, "stays-1": released, "stays-2": released, "moved-0": released, "moved-6": released, "free-0": released,
	})
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
