package kube_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/integration/kit/parallel"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// customObjects lists the reserved IPs of the cluster as backends list their stores, through a
// proxy with a fault. It returns them as the API server sent them, and the requests.
func (f *reservedFixture) customObjects(fault func(p *proxy.Proxy)) (objects, requests []string) {
	f.Helper()
	_, p := f.watched()
	fault(p)
	client, err := kube.RawClient(p.Config(f.Config))
	f.must(err)
	items, err := kube.ListRaw(f.Context(), client, func(get *rest.Request) *rest.Request {
		return get.AbsPath("/apis", group, "v1alpha1", wide.Resource.Resource)
	})
	f.must(err)
	for _, item := range items {
		objects = append(objects, string(item))
	}
	for _, r := range p.Requests() {
		if r.String() == "list "+wide.Resource.Resource {
			requests = append(requests, r.Query)
		}
	}
	return objects, requests
}

// Promise 2, 3. More custom resources than a page has are the same by pages, at once, and after
// an answer that the connection cut.
func TestManyCustomResourcesAreReadByPagesAndAtOnce(t *testing.T) {
	f := newReservedFixture(t)
	names := make([]string, 501)
	for i := range names {
		names[i] = fmt.Sprintf("address-%04d", i)
	}
	f.must(parallel.Each(16, names, func(i int, name string) error {
		_, err := f.objects(wide).Create(f.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group + "/v1alpha1", "kind": "ClusterReservedIP",
			"metadata": map[string]any{"name": name},
			"spec":     map[string]any{"ip": fmt.Sprintf("10.%d.%d.7", i>>8, i&0xff)},
		}}, metav1.CreateOptions{})
		return err
	}))
	byPages, requests := f.customObjects(func(p *proxy.Proxy) {
		p.Before(proxy.On("GET /version"), proxy.Always(proxy.Forbidden()))
	})
	if len(byPages) != len(names) || len(requests) != 2 {
		t.Errorf("%d objects by %q, want %d by two pages", len(byPages), requests, len(names))
	}
	atOnce, requests := f.customObjects(func(*proxy.Proxy) {})
	if diff := cmp.Diff(byPages, atOnce); diff != "" {
		t.Errorf("objects (-by pages +at once):\n%s", diff)
	}
	if !f.Since("1.34") { // such an API server holds the answer, so that it is asked for pages
		return
	}
	if diff := cmp.Diff([]string{""}, requests); diff != "" {
		t.Errorf("requests at once (-want +got):\n%s", diff)
	}
	whole := func(r proxy.Request) bool { return r.String() == "list "+wide.Resource.Resource && r.Query == "" }
	cut, requests := f.customObjects(func(p *proxy.Proxy) { p.After(whole, proxy.Always(proxy.Drop())) })
	if diff := cmp.Diff(byPages, cut); diff != "" {
		t.Errorf("objects (-by pages +after a cut):\n%s", diff)
	}
	if len(requests) != 3 {
		t.Errorf("requests %q, want the answer that was cut, and two pages", requests)
	}
}
