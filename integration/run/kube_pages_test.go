package run_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// listed lists all pods as the program does, and returns those of the namespace home. Without
// atOnce, the API server refuses to give its version, which the program needs to list in one
// answer. Before each page, something is written, so that the cluster's version differs from the
// list's. The answers to the cut requests are cut off.
func (f *fixture) listed(atOnce bool, cut ...proxy.Match) (pods []census.Pod, requests []string) {
	f.Helper()
	client, p := f.watched()
	if !atOnce {
		p.Before(proxy.On("GET /version"), proxy.Always(proxy.Forbidden()))
	}
	p.Before(proxy.On("list pods"), func(ctx context.Context, _ proxy.Request) proxy.Action {
		_, err := f.Kube.CoreV1().ConfigMaps(home).Create(ctx,
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
		if pod.Ref.Namespace == home {
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

const multus = "k8s.v1.cni.cncf.io/network-status"

// Promise 2, 3. More pods than fit on a page are the same by pages, each once, in a single answer,
// and after such an answer was cut off.
func TestManyPodsAreReadByPagesAndAtOnce(t *testing.T) {
	f := newFixture(t)
	names := make([]string, 501)
	for i := range names {
		names[i] = fmt.Sprintf("pod-%04d", i)
	}
	f.must(cluster.Each(16, names, func(i int, name string) error {
		_, err := f.Kube.CoreV1().Pods(home).Create(f.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
				multus: fmt.Sprintf(`[{"name": "default/net-a", "interface": "net1", "ips": ["10.7.%d.%d"]}]`, i>>8, i&0xff),
			}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.invalid/main:1"}}},
		}, metav1.CreateOptions{})
		return err
	}))
	byPages, requests := f.listed(false)
	if len(requests) != 2 { // the second page may be ten times as large
		t.Errorf("requests %q, want two pages", requests)
	}
	var got []string
	for _, pod := range byPages {
		got = append(got, pod.Ref.Name)
		if len(pod.Interfaces) != 1 || pod.UID == "" {
			t.Errorf("%+v, want a UID and an interface", pod)
		}
	}
	if !slices.Equal(got, names) {
		t.Errorf("pods %v, want %v", got, names)
	}
	for name, cut := range map[string][]proxy.Match{"at once": nil, "after an answer that was cut": {proxy.Nth(1, proxy.On("list pods"))}} {
		pods, _ := f.listed(true, cut...)
		if diff := cmp.Diff(byPages, pods, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("pods (-by pages +%s):\n%s", name, diff)
		}
	}
}
