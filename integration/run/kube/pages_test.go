package kube_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/parallel"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Promise 2, 3. Pods that do not fit on a page are read on smaller ones, each of them once.
func TestLargePodsAreReadOnSmallPages(t *testing.T) {
	f := newFixture(t)
	large := cluster.Annotation("example.com/text", strings.Repeat("x", 240<<10))
	names := make([]string, 80) // 19 MiB
	for i := range names {
		names[i] = fmt.Sprintf("large-%02d", i)
	}
	f.must(parallel.Each(4, names, func(_ int, name string) error {
		_, err := f.CreatePod(f.Context(), f.namespace, name, large)
		return err
	}))
	client, p := f.watched()
	raw, err := kube.RawClient(p.Config(f.Config))
	f.must(err)
	pods, err := kube.NewCluster(client.CoreV1(), client.AppsV1(), raw).Pods(f.Context())
	f.must(err)
	var got []string
	for _, pod := range pods {
		if pod.Ref.Namespace == f.namespace {
			got = append(got, pod.Ref.Name)
		}
	}
	if !slices.Equal(got, names) {
		t.Errorf("pods %v, want %v", got, names)
	}
	if n := p.Counts()["list pods"]; n < 4 || n > 12 {
		t.Errorf("%d lists of pods, want some 8: pages of 8 MiB, and those that were given up", n)
	}
}
