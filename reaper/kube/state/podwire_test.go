package state

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// readMessage reads all messages of the tests as those of one list: none may leave anything for the next.
var readMessage = podForm().Protobuf

// samePod reports how the pod as read differs from the pod that the message decodes to. It
// reports no difference if either fails.
func samePod(message []byte) (diff string, readErr, decodeErr error) {
	got, readErr := readMessage(message)
	var pod corev1.Pod
	if decodeErr = pod.Unmarshal(message); readErr != nil || decodeErr != nil {
		return "", readErr, decodeErr
	}
	return cmp.Diff(readPod(&pod), got, compareAddresses), nil, nil
}

// anyText are texts, some of which are meaningful in their place.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "10.1.0.1", "10.1.0.2/32,fd00::1", "::ffff:10.1.0.1", "Succeeded", "Failed", "Running", "web-0", "node-a",
			`[{"interface": "net1", "ips": ["10.2.0.1", "fd02::1"]}]`, `[{"name": "a/b", "ips": ["10.1.0.1"]}, 7]`, `[{"interface`, "PodReadyToStartContainers", "False",
			strings.Repeat("x", maxSandbox+1), "\x00\xff",
		}),
		rapid.String())
}

// anyKey are keys of annotations.
func anyKey() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		networkStatus, networksStatus, networks, calicoPodIP, calicoPodIPs, calicoContainerID, mirror, "", "other", networkStatus + " ",
	})
}

// An oddField is a field that a message may have: its number, and how to make its content.
type oddField struct {
	number  protowire.Number
	content func(t *rapid.T) []byte // nil for a number
}

// The fields of messages that are read, and some that are not.
var (
	oddPodIP = []oddField{{1, oddText}, {2, oddText}}
	oddEntry = []oddField{{1, oddKey}, {2, oddText}, {1, oddKey}, {2, oddText}, {3, nil}}
	oddTime  = []oddField{{1, nil}, {2, nil}, {3, oddText}}
	oddMeta  = []oddField{{1, oddText}, {3, oddText}, {5, oddText}, {8, oddMessage(oddTime)}, {9, oddMessage(oddTime)}, {10, nil}, {12, oddMessage(oddEntry)}, {12, oddMessage(oddEntry)}, {99, oddText}, {98, nil}}
	oddSpec  = []oddField{{4, nil}, {10, oddText}, {11, nil}, {99, oddText}}
	oddWhen  = []oddField{{1, oddType}, {2, oddFalse}, {2, oddText}, {3, oddMessage(oddTime)}, {99, nil}}
	oddState = []oddField{{1, oddText}, {2, oddMessage(oddWhen)}, {6, oddText}, {12, oddMessage(oddPodIP)}, {99, nil}}
	oddPod   = []oddField{{1, oddMessage(oddMeta)}, {2, oddMessage(oddSpec)}, {3, oddMessage(oddState)}, {1, oddMessage(oddMeta)}, {99, oddText}}
)

func oddText(t *rapid.T) []byte { return []byte(anyText().Draw(t, "text")) }

func oddType(*rapid.T) []byte { return []byte(corev1.PodReadyToStartContainers) }

func oddFalse(*rapid.T) []byte { return []byte(corev1.ConditionFalse) }

func oddKey(t *rapid.T) []byte { return []byte(anyKey().Draw(t, "key")) }

// oddMessage makes a message from these fields, in any number and order.
func oddMessage(fields []oddField) func(t *rapid.T) []byte {
	return func(t *rapid.T) []byte {
		var message []byte
		for range rapid.IntRange(0, 6).Draw(t, "fields") {
			f := rapid.SampledFrom(fields).Draw(t, "field")
			if f.content == nil {
				message = protowire.AppendTag(message, f.number, protowire.VarintType)
				message = protowire.AppendVarint(message, rapid.Uint64().Draw(t, "number"))
				continue
			}
			message = protowire.AppendTag(message, f.number, protowire.BytesType)
			message = protowire.AppendBytes(message, f.content(t))
		}
		return message
	}
}

// Promise 1, 2. Any pod is read as it is decoded, even if it has fields several times, in
// parts, in any order, or from a later version.
func TestOddPodIsReadAsItIsDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		message := oddMessage(oddPod)(t)
		if diff, readErr, decodeErr := samePod(message); diff != "" || readErr != nil || decodeErr != nil {
			t.Fatalf("read: %v, decoded: %v (-decoded +read):\n%s", readErr, decodeErr, diff)
		}
	})
}

// Promise 1. Nothing that verdicts rest on is left out.
func TestWholePodIsReadAsItIsDecoded(t *testing.T) {
	pod := annotated(networkStatus, `[{"name": "a/b", "interface": "net1", "ips": ["10.2.0.1"]}]`)
	pod.UID, pod.Spec.HostNetwork = "uid-1", true
	pod.CreationTimestamp, pod.DeletionTimestamp = metav1.Unix(1000, 0), new(metav1.Unix(2000, 0))
	pod.DeletionGracePeriodSeconds, pod.Spec.TerminationGracePeriodSeconds = new(int64(40)), new(int64(50))
	pod.Status.PodIPs = []corev1.PodIP{{IP: "10.1.0.1"}, {IP: "fd00::1"}, {IP: "fd00::2"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}, {Type: corev1.PodReady}}
	for _, key := range []string{"", networksStatus, networks, calicoPodIP, calicoPodIPs, calicoContainerID, mirror} {
		if key != "" {
			pod.Annotations[key] = "10.3.0.1"
		}
		message, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if diff, readErr, decodeErr := samePod(message); diff != "" || readErr != nil || decodeErr != nil {
			t.Errorf("with %q: read: %v, decoded: %v (-decoded +read):\n%s", key, readErr, decodeErr, diff)
		}
		if diff, _, _ := samePod(nil); diff != "" {
			t.Errorf("with %q: the next pod has something of it (-empty +read):\n%s", key, diff)
		}
	}
}

// Promise 2. A pod with a missing part, or one of the wrong type, is an error, not a pod
// without that part.
func TestDamagedPodIsAnError(t *testing.T) {
	whole, err := annotated(networkStatus, `[{"interface": "net1", "ips": ["10.2.0.1"]}]`).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < len(whole); cut++ {
		var pod corev1.Pod
		_, err := readMessage(whole[:cut])
		if decodeErr := pod.Unmarshal(whole[:cut]); (err == nil) != (decodeErr == nil) {
			t.Errorf("after %d of %d bytes: %v, and to decode it: %v", cut, len(whole), err, decodeErr)
		}
	}
	wrong := func(path ...protowire.Number) []byte {
		last := len(path) - 1
		message := protowire.AppendVarint(protowire.AppendTag(nil, path[last], protowire.VarintType), 1)
		for _, number := range slices.Backward(path[:last]) {
			message = protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), message)
		}
		return message
	}
	for _, path := range [][]protowire.Number{
		{1}, {1, 1}, {1, 3}, {1, 5}, {1, 12}, {1, 12, 1}, {1, 12, 2}, {2}, {2, 10}, {3}, {3, 1}, {3, 2}, {3, 2, 1}, {3, 2, 2}, {3, 6}, {3, 12}, {3, 12, 1},
	} {
		if pod, err := readMessage(wrong(path...)); err == nil {
			t.Errorf("a number where %v has another type is read: %+v", path, pod)
		}
	}
	for _, path := range [][]protowire.Number{{1, 10}, {2, 4}, {2, 11}} {
		message := protowire.AppendBytes(protowire.AppendTag(nil, path[1], protowire.BytesType), []byte("1"))
		if pod, err := readMessage(protowire.AppendBytes(protowire.AppendTag(nil, path[0], protowire.BytesType), message)); err == nil {
			t.Errorf("a text where %v is a number is read: %+v", path, pod)
		}
	}
}
