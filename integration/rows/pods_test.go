package rows_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// A pod that exists keeps what it has, whatever it shows. Upstream gives up
// most of these.
func TestPodThatExistsKeepsItsAddress(t *testing.T) {
	kept := both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 inUse PodPresent kept")
	pod := func(opts ...cluster.PodOption) func(*scene) {
		return func(s *scene) {
			s.add(lan, "web-0")
			s.pod("web-0", opts...)
		}
	}
	play(t, []scenario{
		// Rows 6 and 8: Multus writes the annotation after the last ADD.
		{name: "pending, without annotation", set: pod(cluster.Phase(corev1.PodPending)), want: kept},
		// Row 10.
		{name: "running, without annotation", set: pod(), want: kept},
		// Row 11.
		{name: "annotation is no JSON", set: pod(annotated(`[{"ips":`)), want: kept},
		{name: "annotation is no list", set: pod(annotated(`{"interface":"net1","ips":["10.0.0.9"]}`)), want: kept},
		// Row 12.
		{name: "shown on the default interface only", set: pod(cluster.PodIPs("10.0.0.1"), cluster.Networks()), want: kept},
		{name: "shown in the status only", set: pod(cluster.PodIPs("10.0.0.1")), want: kept},
		// Row 13.
		{name: "interface with another name", set: pod(shows("hello", "10.0.0.1")), want: kept},
		// It may show an address that this pool never gave to it.
		{name: "shows another address", set: pod(shows("net1", "10.0.0.9")), want: kept},
		// Row 15.
		{name: "terminating", set: func(s *scene) {
			s.runs("web-0", s.add(lan, "web-0")...)
			s.terminate("web-0")
		}, want: kept},
		// Row 16. The taint manager's word says nothing about the sandbox. Once
		// nodes are asked too, their answer may hold more, and never less.
		{name: "terminating on a node that cannot be reached", set: func(s *scene) {
			s.add(lan, "web-0")
			s.must(s.cluster.CreateNode(s.Context(), cluster.DefaultNode, false))
			s.pod("web-0", shows("net1", "10.0.0.1"), disrupted)
			s.terminate("web-0")
		}, want: kept},
	})
}

// An address that a pod shows stays, whoever the entry names: here a pod that
// is gone.
func TestAddressThatAnyPodShowsStays(t *testing.T) {
	kept := both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 inUse AddressInUse kept")
	shown := func(opts ...cluster.PodOption) func(*scene) {
		return func(s *scene) {
			s.add(lan, "web-0")
			s.pod("other", opts...)
		}
	}
	play(t, []scenario{
		// Row 13.
		{name: "by Multus", set: shown(shows("net1", "10.0.0.1")), want: kept},
		{name: "by Multus, on an interface with another name", set: shown(shows("eth1", "10.0.0.1")), want: kept},
		// Row 12.
		{name: "by Multus, on the default interface", set: shown(cluster.PodIPs("10.0.0.1"), cluster.Networks()), want: kept},
		{name: "in the status", set: shown(cluster.PodIPs("10.0.0.1")), want: kept},
		{name: "by Calico", set: shown(cluster.Annotation("cni.projectcalico.org/podIPs", "10.244.7.7/32,10.0.0.1/32")), want: kept},
		// Written otherwise, and the same address.
		{name: "with a prefix length", set: shown(shows("net1", "10.0.0.1/24")), want: kept},
		{name: "mapped into IPv6", set: shown(shows("net1", "::ffff:10.0.0.1")), want: kept},
	})
}

// Row 14: what a finished pod shows, nobody has any more.
func TestFinishedPodKeepsItsAddressUnlessThePolicyReleasesIt(t *testing.T) {
	finished := func(phase corev1.PodPhase) func(*scene) {
		return func(s *scene) {
			s.pod("job", shows("net1", s.add(lan, "job")...), cluster.Phase(phase))
		}
	}
	held := both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 job held PodFinished kept")
	released := both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 job orphan PodFinished released")
	play(t, []scenario{
		{name: "succeeded", set: finished(corev1.PodSucceeded), want: held},
		{name: "failed", set: finished(corev1.PodFailed), want: held},
		{name: "succeeded, released", policy: "pods: {finished: release}\n", set: finished(corev1.PodSucceeded), want: released},
		{name: "failed, released", policy: "pods: {finished: release}\n", set: finished(corev1.PodFailed), want: released},
		{name: "unknown, released", policy: "pods: {finished: release}\n", set: finished(corev1.PodUnknown),
			want: both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 job inUse PodPresent kept")},
	})
}

// A pod that is gone may be about to come back, or still be running.
func TestPodThatIsGoneMayHaveToWait(t *testing.T) {
	play(t, []scenario{{
		// Row 17. The store does not know the node, so it is the grace period
		// that holds the address. Once nodes are asked too, this may be held
		// for that reason.
		name:   "force-deleted from a node that cannot be reached",
		policy: "rules:\n- match: {namespaces: [shop]}\n  gracePeriod: 15m\n",
		set: func(s *scene) {
			s.must(s.cluster.CreateNode(s.Context(), cluster.DefaultNode, false))
			s.runs("web-0", s.add(lan, "web-0")...)
			s.gone("web-0")
		},
		want: both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 suspected PodAbsent kept"),
	}, {
		// Beyond the rows: what 176 and 182 suffered from.
		name: "ordinals that a StatefulSet wants and does not want",
		set: func(s *scene) {
			s.add(lan, "web-0")
			s.add(lan, "web-1")
			s.statefulSet("web", 1)
		},
		want: append(
			both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 held Retained kept"),
			both("10.0.0.0-24/2", "10.0.0.2", "10.0.0.2 web-1 orphan PodAbsent released")...),
	}})
}

// annotated is a pod with a network-status of that text.
func annotated(text string) cluster.PodOption {
	return cluster.Annotation(cluster.NetworkStatusAnnotation, text)
}

// disrupted is what the taint manager writes before it deletes a pod.
func disrupted(pod *corev1.Pod) {
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager",
	})
}

// terminate deletes a pod of the shop as a controller does: it stays until its
// kubelet says that it has ended, and there is no kubelet.
func (s *scene) terminate(name string) {
	s.Helper()
	s.must(s.cluster.Kube.CoreV1().Pods(shop).Delete(s.Context(), name, metav1.DeleteOptions{}))
	pod, err := s.cluster.Kube.CoreV1().Pods(shop).Get(s.Context(), name, metav1.GetOptions{})
	s.must(err)
	if pod.DeletionTimestamp == nil {
		s.Fatalf("pod %s is not terminating", name)
	}
}

// statefulSet creates a StatefulSet of the shop. There is no controller.
func (s *scene) statefulSet(name string, replicas int32) {
	s.Helper()
	labels := map[string]string{"app": name}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.invalid/main:1"}}},
			},
		},
	}
	_, err := s.cluster.Kube.AppsV1().StatefulSets(shop).Create(s.Context(), set, metav1.CreateOptions{})
	s.must(err)
}
