package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The floor must not miss a page: it would cost too little.
func TestFloorFindsTheNextPage(t *testing.T) {
	protobuf := func(token string) []byte {
		data, err := builtin(&corev1.PodList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "12", Continue: token},
			Items:    []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("x", 3*headSize)}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	item := `{"metadata":{"name":"` + strings.Repeat("x", 3*tailSize) + `","resourceVersion":"1"}}`
	custom := func(metadata string) []byte {
		return []byte(`{"apiVersion":"v1","items":[` + item + `,` + item + `],"kind":"List","metadata":` + metadata + "}\n")
	}
	for _, tt := range []struct {
		name string
		body []byte
		next func(head, end []byte) (string, error)
		want string
	}{
		{"protobuf", protobuf("token"), nextInProtobuf, "token"},
		{"protobuf, last page", protobuf(""), nextInProtobuf, ""},
		{"JSON", custom(`{"continue":"token","resourceVersion":"12"}`), nextInJSON, "token"},
		{"JSON, last page", custom(`{"continue":"","resourceVersion":"12"}`), nextInJSON, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(io.NopCloser(bytes.NewReader(tt.body)), tt.next)
			if err != nil || got != tt.want {
				t.Errorf("read = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
	for _, body := range []string{"", `{"kind":"Status","metadata":{}}`, `{"items":[]}`, "k8s\x00"} {
		for _, next := range []func(head, end []byte) (string, error){nextInJSON, nextInProtobuf} {
			if got, err := read(io.NopCloser(strings.NewReader(body)), next); err == nil {
				t.Errorf("read of %q = %q", body, got)
			}
		}
	}
}
