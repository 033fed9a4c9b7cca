package kube_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/parallel"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// listed lists all pods as the program does, and returns those of the test's namespace. The
// API server is asked for its version only to list them at once. Before each page, something is
// written, so that the version of the cluster is another one than that of the list. The answers
// to some of the requests are cut.
func (f *fixture) listed(atOnce bool, cut ...proxy.Match) (pods []reaper.Pod, requests []string) {
	f.Helper()
	client, p := f.watched()
	if !atOnce {
		p.Before(proxy.On("GET /version"), proxy.Always(proxy.Forbidden()))
	}
	p.Before(proxy.On("list pods"), func(ctx context.Context, _ proxy.Request) proxy.Action {
		_, err := f.Kube.CoreV1().ConfigMaps(f.namespace).Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "written-"}}, metav1.CreateOptions{})
		if err != nil {
			f.Error(err)
		}
		return proxy.Pass()
	})
	for _, match := range cut {
		p.After(match, proxy.Always(proxy.Drop()))
	}
	raw, err := kube.RawClient(p.Config(f.Config))
	f.must(err)
	all, err := state.NewCluster(client.CoreV1(), client.AppsV1(), raw).Pods(f.Context())
	f.must(err)
	for _, pod := range all {
		if pod.Ref.Namespace == f.namespace {
			pods = append(pods, pod)
		}
	}
	for _, r := range p.Requests() {
		if r.String() == "list pods" {
			requests = append(requests, r.Query)
		}
	}
	return pods, requests
}

// largePods creates pods of 19 MiB together, and returns their names.
func (f *fixture) largePods() []string {
	f.Helper()
	large := cluster.Annotation("example.com/text", strings.Repeat("x", 240<<10))
	names := make([]string, 80)
	for i := range names {
		names[i] = fmt.Sprintf("large-%02d", i)
	}
	f.must(parallel.Each(4, names, func(_ int, name string) error {
		_, err := f.CreatePod(f.Context(), f.namespace, name, large, cluster.Annotation(multus,
			fmt.Sprintf(`[{"name": "default/net-a", "interface": "net1", "ips": ["10.7.0.%s"]}]`, name[len("large-"):])))
		return err
	}))
	return names
}

const multus = "k8s.v1.cni.cncf.io/network-status"

// Promise 2, 3. Pods that do not fit on a page are read on smaller ones, each of them once.
// All pods at once are the same pods, in one answer of any size, and so they are after an
// answer that the connection cut.
func TestLargePodsAreReadByPagesAndAtOnce(t *testing.T) {
	f := newFixture(t)
	names := f.largePods()
	byPages, requests := f.listed(false)
	if n := len(requests); n < 4 || n > 12 {
		t.Errorf("%d lists of pods, want some 8: pages of 8 MiB, and those that were given up", n)
	}
	atOnce, requests := f.listed(true)
	if !f.Since("1.34") { // such an API server holds the answer, so that it is asked for pages
		if len(requests) < 4 {
			t.Errorf("%d lists of pods with the version known, want pages", len(requests))
		}
	} else if diff := cmp.Diff([]string{""}, requests); diff != "" {
		t.Errorf("requests for all pods at once (-want +got):\n%s", diff)
	}
	var got []string
	for _, pod := range byPages {
		got = append(got, pod.Ref.Name)
		if len(pod.Interfaces) != 1 || pod.UID == "" || pod.InStatus == 0 {
			t.Errorf("%+v, want a UID, an interface and an address of the status", pod)
		}
	}
	if !slices.Equal(got, names) {
		t.Errorf("pods %v, want %v", got, names)
	}
	if diff := cmp.Diff(byPages, atOnce, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("pods (-by pages +at once):\n%s", diff)
	}
	if !f.Since("1.34") {
		return
	}
	cut, requests := f.listed(true, proxy.Nth(1, proxy.On("list pods")))
	if len(requests) < 4 {
		t.Errorf("%d lists of pods after the answer that was cut, want pages", len(requests))
	}
	if diff := cmp.Diff(byPages, cut, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("pods (-by pages +after an answer that was cut):\n%s", diff)
	}
}

// Promise 2, 3. More pods than a page has are the same by pages and at once.
func TestManyPodsAreReadByPagesAndAtOnce(t *testing.T) {
	f := newFixture(t)
	names := make([]string, 501)
	for i := range names {
		names[i] = fmt.Sprintf("pod-%04d", i)
	}
	f.must(parallel.Each(16, names, func(_ int, name string) error {
		_, err := f.Kube.CoreV1().Pods(f.namespace).Create(f.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.invalid/main:1"}}},
		}, metav1.CreateOptions{})
		return err
	}))
	byPages, requests := f.listed(false)
	if len(byPages) != len(names) || len(requests) != 2 { // the second page may have ten times as many
		t.Errorf("%d pods by %d requests, want %d by 2", len(byPages), len(requests), len(names))
	}
	atOnce, _ := f.listed(true)
	if diff := cmp.Diff(byPages, atOnce, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("pods (-by pages +at once):\n%s", diff)
	}
}
