package kube

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// benchPods are the pods of a page, of 5 KB each, with an interface of Multus. base is the
// number of the first one.
func benchPods(base, n int) []corev1.Pod {
	var all []corev1.Pod
	for i := base; i < base+n; i++ {
		ip := fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&0xff, i&0xff)
		pod := corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: fmt.Sprintf("tenant-%d", i%500), Name: fmt.Sprintf("web-7d4b9c6f5d-%05d", i),
				UID: types.UID(fmt.Sprintf("6f1c9b1e-0d7a-4c5e-9a53-%012d", i)), CreationTimestamp: metav1.Unix(1e9, 0),
				Labels:      map[string]string{"app": "web", "pod-template-hash": "7d4b9c6f5d"},
				Annotations: map[string]string{networks: "net-a", networkStatus: `[{"name":"default/net-a","interface":"net1","ips":["` + ip + `"],"mac":"02:00:00:00:00:01","dns":{}}]`},
			},
			Spec:   corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i%5000), TerminationGracePeriodSeconds: new(int64(30))},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "192.168.0.1", PodIPs: []corev1.PodIP{{IP: "192.168.0.1"}}},
		}
		for c := range 3 {
			container := corev1.Container{Name: fmt.Sprintf("c%d", c), Image: "registry.example.com/team/web:1.2.3"}
			for e := range 12 {
				container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", e), Value: strings.Repeat("v", 60)})
			}
			pod.Spec.Containers = append(pod.Spec.Containers, container)
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: container.Name, Image: container.Image, ImageID: strings.Repeat("i", 70), ContainerID: strings.Repeat("d", 70),
			})
		}
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(strings.Repeat("f:", 500))}}
		all = append(all, pod)
	}
	return all
}

// benchPages is a list of pods, as the answers to the requests for its pages.
func benchPages(b *testing.B, n int) [][]byte {
	var pages [][]byte
	for base := 0; base < n; base += pageSize {
		pages = append(pages, encoded(b, listOf(benchPods(base, pageSize)...), true))
	}
	return pages
}

// BenchmarkReadPods compares how pods are read from the wire with how client-go decodes
// them: page by page, and the pages are made before.
func BenchmarkReadPods(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		pages := benchPages(b, n)
		for name, read := range map[string]func(data []byte, f Form[reaper.Pod]) (page[reaper.Pod], error){
			"decoded": func(data []byte, _ Form[reaper.Pod]) (page[reaper.Pod], error) { return decoded(data) },
			"read": func(data []byte, f Form[reaper.Pod]) (page[reaper.Pod], error) {
				return f.read(&answerBody{from: bytes.NewReader(data), left: MaxPage})
			},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					var all []reaper.Pod
					form := podForm()
					for _, data := range pages {
						page, err := read(data, form)
						if err != nil {
							b.Fatal(err)
						}
						all = append(all, page.items...)
					}
					if len(all) != n {
						b.Fatal(len(all))
					}
				}
			})
		}
	}
}

// BenchmarkHeldPods measures the memory that pods take in a census, in bytes a pod.
func BenchmarkHeldPods(b *testing.B) {
	const n = 150_000
	for b.Loop() {
		before := heap()
		var all []reaper.Pod
		form := podForm()
		for base := 0; base < n; base += pageSize {
			data := encoded(b, listOf(benchPods(base, pageSize)...), true)
			page, err := form.read(&answerBody{from: bytes.NewReader(data), left: MaxPage})
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, page.items...)
		}
		form = Form[reaper.Pod]{}
		b.ReportMetric(float64(heap()-before)/n, "B/pod-listed")
		census := reaper.NewCensus(time.Now(), all, nil)
		all = nil
		b.ReportMetric(float64(heap()-before)/n, "B/pod-in-census")
		runtime.KeepAlive(census)
	}
}

// heap returns the bytes that are in use.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
