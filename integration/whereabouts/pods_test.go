package whereabouts_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// A pod that exists keeps its address, whichever address it shows. Whereabouts'
// own reconciler takes most of these away.
func TestPodThatExistsKeepsItsAddress(t *testing.T) {
	kept := both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 inUse PodPresent kept")
	pod := func(opts ...cluster.PodOption) func(*fixture) {
		return func(f *fixture) {
			f.fill(lan.Range, map[int]string{1: "web-0"})
			f.pod("web-0", opts...)
		}
	}
	play(t, []scenario{
		// Multus writes the annotation after the last ADD.
		{name: "pending, without annotation", set: pod(cluster.Phase(corev1.PodPending)), want: kept},
		{name: "running, without annotation", set: pod(), want: kept},
		{name: "annotation is no JSON", set: pod(annotated(`[{"ips":`)), want: kept},
		{name: "annotation is no list", set: pod(annotated(`{"interface":"net1","ips":["10.0.0.9"]}`)), want: kept},
		{name: "shown on the default interface only", set: pod(cluster.PodIPs("10.0.0.1"), cluster.Networks()), want: kept},
		{name: "shown in the status only", set: pod(cluster.PodIPs("10.0.0.1")), want: kept},
		{name: "interface with another name", set: pod(shows("hello", "10.0.0.1")), want: kept},
		// It may show an address that this pool never gave to it.
		{name: "shows another address", set: pod(shows("net1", "10.0.0.9")), want: kept},
		{name: "terminating", set: func(f *fixture) {
			f.fill(lan.Range, map[int]string{1: "web-0"})
			f.runs("web-0", "10.0.0.1")
			f.terminate("web-0")
		}, want: kept},
		// The taint manager's word says nothing about the sandbox. Once
		// nodes are asked too, their answer may hold more, and never less.
		{name: "terminating on a node that cannot be reached", set: func(f *fixture) {
			f.fill(lan.Range, map[int]string{1: "web-0"})
			f.must(f.CreateNode(f.Context(), cluster.DefaultNode, false))
			f.pod("web-0", shows("net1", "10.0.0.1"), disrupted)
			f.terminate("web-0")
		}, want: kept},
	})
}

// An address that a pod shows stays, whichever pod the entry names: here one that
// is gone.
func TestAddressThatAnyPodShowsStays(t *testing.T) {
	kept := both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 inUse AddressInUse kept")
	shown := func(opts ...cluster.PodOption) func(*fixture) {
		return func(f *fixture) {
			f.fill(lan.Range, map[int]string{1: "web-0"})
			f.pod("other", opts...)
		}
	}
	play(t, []scenario{
		{name: "by Multus", set: shown(shows("net1", "10.0.0.1")), want: kept},
		{name: "by Multus, on an interface with another name", set: shown(shows("eth1", "10.0.0.1")), want: kept},
		{name: "by Multus, on the default interface", set: shown(cluster.PodIPs("10.0.0.1"), cluster.Networks()), want: kept},
		{name: "in the status", set: shown(cluster.PodIPs("10.0.0.1")), want: kept},
		{name: "by Calico", set: shown(cluster.Annotation("cni.projectcalico.org/podIPs", "10.244.7.7/32,10.0.0.1/32")), want: kept},
		// Written otherwise, and the same address.
		{name: "with a prefix length", set: shown(shows("net1", "10.0.0.1/24")), want: kept},
		{name: "mapped into IPv6", set: shown(shows("net1", "::ffff:10.0.0.1")), want: kept},
	})
}

// No pod has the address that a finished pod shows.
func TestFinishedPodKeepsItsAddressUnlessThePolicyReleasesIt(t *testing.T) {
	finished := func(phase corev1.PodPhase) func(*fixture) {
		return func(f *fixture) {
			f.fill(lan.Range, map[int]string{1: "job"})
			f.pod("job", shows("net1", "10.0.0.1"), cluster.Phase(phase))
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
func (f *fixture) terminate(name string) {
	f.Helper()
	f.must(f.Kube.CoreV1().Pods(shop).Delete(f.Context(), name, metav1.DeleteOptions{}))
	pod, err := f.Kube.CoreV1().Pods(shop).Get(f.Context(), name, metav1.GetOptions{})
	f.must(err)
	if pod.DeletionTimestamp == nil {
		f.Fatalf("pod %s is not terminating", name)
	}
}
