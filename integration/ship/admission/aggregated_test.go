package admission_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/ip-reaper/ip-reaper/integration/kit/admission"
)

// An API server passes a request on to an aggregated API without a look at its policies.
// docs/threat-model.md says so.
func TestAggregatedAPIsAreNotConcerned(t *testing.T) {
	f := newFixture(t)
	var writes atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			writes.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1.aggregated.example.com","resources":[]}`)
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	f.must(err)
	services, apis := schema.GroupVersionResource{Version: "v1", Resource: "services"}, schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	none := metav1.CreateOptions{}
	_, err = f.Dynamic.Resource(services).Namespace("kube-system").Create(t.Context(), object(t,
		`{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"kube-system","name":"aggregated"},"spec":{"type":"ExternalName","externalName":"localhost","ports":[{"port":`+port+`}]}}`), none)
	f.must(err)
	var api *unstructured.Unstructured
	api, err = f.Dynamic.Resource(apis).Create(t.Context(), object(t, `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.aggregated.example.com"},
		"spec":{"group":"aggregated.example.com","version":"v1","groupPriorityMinimum":1000,"versionPriority":15,"insecureSkipTLSVerify":true,
		"service":{"namespace":"kube-system","name":"aggregated","port":`+port+`}}}`), none)
	f.must(err)
	t.Cleanup(func() { _ = f.Dynamic.Resource(apis).Delete(t.Context(), api.GetName(), metav1.DeleteOptions{}) })
	config, err := admission.As(f.Cluster, admission.Reaper)
	f.must(err)
	kube, err := kubernetes.NewForConfig(config)
	f.must(err)
	for range 100 {
		err = kube.RESTClient().Post().AbsPath("/apis/aggregated.example.com/v1/namespaces/kube-system/pods").Body([]byte(`{}`)).Do(t.Context()).Error()
		if writes.Load() > 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("the write did not arrive: %v", err)
}
