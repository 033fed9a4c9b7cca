package kube

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// listOf is a list of pods as an API server sends it.
func listOf(pods ...corev1.Pod) *corev1.PodList {
	return &corev1.PodList{
		TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
		ListMeta: metav1.ListMeta{ResourceVersion: "99"}, Items: pods,
	}
}

// encoded are the bytes of a list: object by object, as API servers since 1.33 write them, or
// in one piece.
func encoded(t interface{ Fatal(...any) }, list *corev1.PodList, streaming bool) []byte {
	serializer := protobuf.NewSerializerWithOptions(scheme.Scheme, scheme.Scheme, protobuf.SerializerOptions{StreamingCollectionsEncoding: streaming})
	data, err := runtime.Encode(serializer, list)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// decoded are the pods of an answer as client-go decodes it.
func decoded(data []byte) (page[corev1.Pod], error) {
	list := new(corev1.PodList)
	switch into, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, list); {
	case err != nil:
		return page[corev1.Pod]{}, err
	case into != runtime.Object(list):
		return page[corev1.Pod]{}, errNoList
	}
	return page[corev1.Pod]{items: list.Items, version: list.ResourceVersion, next: list.Continue}, nil
}

// readPods reads an answer as the program does.
func readPods(from io.Reader) (page[corev1.Pod], error) {
	form := FormOf("v1", "PodList", func(p *corev1.Pod) corev1.Pod { return *p })
	return form.read(NewObjectReader(from))
}

var comparePages = cmp.Options{cmpopts.EquateEmpty(), cmp.AllowUnexported(page[corev1.Pod]{})}

// Promise 1, 2. Any list is read as it is decoded, no matter how its bytes arrive.
func TestPodListIsReadAsItIsDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := listOf()
		list.Continue = rapid.String().Draw(t, "continue")
		list.RemainingItemCount = rapid.Ptr(rapid.Int64(), true).Draw(t, "remaining")
		for _, name := range rapid.SliceOfN(rapid.String(), 0, 20).Draw(t, "names") {
			list.Items = append(list.Items, podOf(name))
		}
		data := encoded(t, list, rapid.Bool().Draw(t, "object by object"))
		want, err := decoded(data)
		if err != nil {
			t.Fatal(err)
		}
		from := rapid.SampledFrom([]func(io.Reader) io.Reader{
			func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader,
		}).Draw(t, "by")
		got, err := readPods(from(bytes.NewReader(data)))
		if diff := cmp.Diff(want, got, comparePages); err != nil || diff != "" {
			t.Fatalf("%v (-decoded +read):\n%s", err, diff)
		}
	})
}

// podOf is a pod with this name.
func podOf(name string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{"note": name}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.1.0.1"}, {IP: "fd00::1"}}},
	}
}

// namedPods are pods with different names.
func namedPods(n int) []corev1.Pod {
	var all []corev1.Pod
	for i := range n {
		all = append(all, podOf(fmt.Sprintf("web-%d", i)))
	}
	return all
}

// Promise 1, 2. An answer that breaks off at any byte is an error, never a shorter list.
func TestPodListThatBreaksOffIsAnError(t *testing.T) {
	data := encoded(t, listOf(namedPods(3)...), true)
	end := len(data) - len(emptyRest)
	if string(data[end:]) != emptyRest {
		t.Fatalf("the answer ends with %q", data[end:])
	}
	for cut := range end {
		got, err := readPods(bytes.NewReader(data[:cut]))
		if err == nil || got.items != nil {
			t.Errorf("after %d of %d bytes: %d pods, %v", cut, len(data), len(got.items), err)
		}
	}
	failure := errors.New("reset by peer")
	for cut := range len(data) + 1 {
		_, err := readPods(io.MultiReader(bytes.NewReader(data[:cut]), iotest.ErrReader(failure)))
		if !errors.Is(err, failure) {
			t.Errorf("after %d of %d bytes: %v, want the error of the connection", cut, len(data), err)
		}
	}
}

// emptyRest is the end of an answer: its content encoding and content type, both empty.
const emptyRest = "\x1a\x00\x22\x00"

// field is a field of a message.
func field(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// Promise 2. Anything but a whole list of pods is an error; a whole list is read in any order.
func TestOddAnswersAreNoLists(t *testing.T) {
	kind := field(1, slices.Concat(field(1, []byte("v1")), field(2, []byte("PodList"))))
	meta := field(1, field(2, []byte("99")))
	item := func(name string) []byte { return field(2, field(1, field(1, []byte(name)))) }
	list := func(parts ...[]byte) []byte { return field(2, slices.Concat(parts...)) }
	for _, tt := range []struct {
		name  string
		parts [][]byte
		want  []string // names
		says  string
	}{
		{"a list", [][]byte{kind, list(meta, item("a"), item("b"))}, []string{"a", "b"}, ""},
		{"the metadata last", [][]byte{list(item("a"), item("b"), meta), kind}, []string{"a", "b"}, ""},
		{"fields of a later version", [][]byte{kind, list(meta, item("a"), field(9, []byte("new"))), field(9, []byte("new"))}, []string{"a"}, ""},
		{"no kind", [][]byte{list(meta, item("a"))}, nil, "unexpected EOF"},
		{"no object", [][]byte{kind}, nil, "unexpected EOF"},
		{"no metadata", [][]byte{kind, list(item("a"))}, nil, "no resourceVersion"},
		{"two objects", [][]byte{kind, list(meta, item("a")), list(meta, item("b"))}, nil, "two objects"},
		{"a pod", [][]byte{field(1, slices.Concat(field(1, []byte("v1")), field(2, []byte("Pod")))), list(meta)}, nil, `"Pod" of "v1"`},
		{"a shard", [][]byte{kind, list(field(1, slices.Concat(field(2, []byte("99")), field(5, nil))), item("a"))}, nil, "one shard"},
		{"a pod that is longer than the list", [][]byte{kind, field(2, append(slices.Concat(meta), 0x12, 9, 1)), bytes.Repeat([]byte{0}, 20)}, nil, "longer than its message"},
		{"a length that is longer than the list", [][]byte{kind, field(2, append(slices.Concat(meta), 0x12, 0x80)), {0}}, nil, "longer than its message"},
		{"a broken pod", [][]byte{kind, list(meta, field(2, []byte{0x0a, 9}))}, nil, "decode"},
		{"a long text beside", [][]byte{kind, list(meta), field(9, make([]byte, 2000))}, nil, "longer than its message"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := append([]byte(protobufPrefix), slices.Concat(tt.parts...)...)
			got, err := readPods(bytes.NewReader(data))
			var names []string
			for _, pod := range got.items {
				names = append(names, pod.Name)
			}
			if diff := cmp.Diff(tt.want, names); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %q", err, tt.says)
			}
		})
	}
	for _, text := range []string{`{"kind": "PodList"}`, "", "k8", "<html></html>"} {
		if _, err := readPods(strings.NewReader(text)); err == nil {
			t.Errorf("%q is read as a list", text)
		}
	}
}

// A pod may have as many bytes as the limit; a larger one cannot be read by another request
// either.
func TestLargestPodOfAList(t *testing.T) {
	large := func(size int) []byte {
		return encoded(t, listOf(podOf("web-0"), podOf(strings.Repeat("x", size/2))), true)
	}
	for size, says := range map[int]error{MaxObject - 1000: nil, MaxObject: ipam.ErrRefused} {
		got, err := readPods(bytes.NewReader(large(size)))
		if !errors.Is(err, says) || (len(got.items) == 2) != (says == nil) {
			t.Errorf("a pod of %d bytes: %d pods, %v, want %v", size, len(got.items), err, says)
		}
	}
}
