package kube_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// clientAt returns a client for a server with a handler.
func clientAt(t *testing.T, answers http.Handler) rest.Interface {
	t.Helper()
	server := httptest.NewServer(answers)
	t.Cleanup(server.Close)
	client, err := rest.UnversionedRESTClientFor(&rest.Config{
		Host: server.URL, QPS: -1,
		ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// blocksAt lists what is at a path.
func blocksAt(t *testing.T, client rest.Interface) ([]string, error) {
	t.Helper()
	items, err := kube.ListRaw(t.Context(), client, func(get *rest.Request) *rest.Request { return get.AbsPath("/apis/g/v1/blocks") })
	var texts []string
	for _, item := range items {
		texts = append(texts, string(item))
	}
	return texts, err
}

// sendJSON answers with a document, and with its code if it is a Status.
func sendJSON(w http.ResponseWriter, document string) {
	status := metav1.Status{Code: http.StatusOK}
	_ = json.Unmarshal([]byte(document), &status)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_, _ = io.WriteString(w, document)
}

func statusOf(t *testing.T, err *apierrors.StatusError) string {
	t.Helper()
	s := err.Status()
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	document, failure := json.Marshal(s)
	if failure != nil {
		t.Fatal(failure)
	}
	return string(document)
}

// Promise 2. The error has the API server's reason, because that distinguishes a missing object
// from the 404 of a proxy.
func TestSendReturnsTheReasonOfTheServer(t *testing.T) {
	resource := schema.GroupResource{Resource: "blocks"}
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter)
		body   string
		says   string
	}{
		{"an object", func(w http.ResponseWriter) { sendJSON(w, `{"n": 1.50}`) }, `{"n": 1.50}`, ""},
		{"no such object", func(w http.ResponseWriter) { sendJSON(w, statusOf(t, apierrors.NewNotFound(resource, "a"))) }, "", `"a" not found`},
		{"a proxy's 404", func(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }, "", "could not find"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := clientAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { tt.answer(w) }))
			body, err := kube.Send(t.Context(), client.Get().AbsPath("/apis/g/v1/blocks/a"))
			equal(t, "body", string(body), tt.body)
			if (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %q in it", err, tt.says)
			}
		})
	}
}

// Promise 4. Only the version that was read is deleted, and what finalizers keep is not gone.
func TestDeleteNamesOneVersionOfTheObject(t *testing.T) {
	for _, tt := range []struct{ name, answer, says string }{
		{"gone", `{"kind":"Status","status":"Success"}`, ""},
		{"kept", `{"metadata":{"deletionTimestamp":"2026-01-02T15:04:05Z","finalizers":["example.com/hold"]}}`, "example.com/hold"},
		{"no answer of an API server", `[]`, "decode the answer to the deletion"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var sent struct{ Preconditions map[string]string }
			client := clientAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
					t.Error(err)
				}
				sendJSON(w, tt.answer)
			}))
			err := kube.Delete(t.Context(), client.Delete().AbsPath("/apis/g/v1/blocks/a"), "uid-1", "7")
			equal(t, "uid", sent.Preconditions["uid"], "uid-1")
			equal(t, "resourceVersion", sent.Preconditions["resourceVersion"], "7")
			if (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %q in it", err, tt.says)
			}
		})
	}
}

// Promise 6. A field in other case is another field, and numbers are not rounded.
func TestDecodeIsExact(t *testing.T) {
	var got struct {
		Deleted bool   `json:"deleted"`
		N       uint64 `json:"n"`
		Any     any    `json:"any"`
	}
	err := kube.Decode([]byte(`{"Deleted": true, "n": 9007199254740993, "any": 9007199254740993, "new": 1}`), &got)
	equal(t, "error", err, nil)
	equal(t, "deleted", got.Deleted, false)
	equal(t, "number", got.N, 9007199254740993)
	equal(t, "any number", got.Any, any(int64(9007199254740993)))
	if err := kube.Decode([]byte(`{"n": -1}`), &got); err == nil {
		t.Error("a number that does not fit is read")
	}
}
