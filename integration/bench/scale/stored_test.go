package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// A pod is stored as the API server stores it, and has the size that is promised.
func TestStoredPodIsAPodOfFiveKilobytes(t *testing.T) {
	e := entry(12)
	r, err := podRecord(e)
	if err != nil {
		t.Fatal(err)
	}
	if r.key != "/registry/pods/tenant-0/frontend-7d9c5b8f6-0000c" || !bytes.HasPrefix(r.value, []byte("k8s\x00")) {
		t.Errorf("the key is %s, and the value begins with %q", r.key, r.value[:4])
	}
	if len(r.value) < 4500 || len(r.value) > 5500 {
		t.Errorf("the pod has %d bytes, want about 5,000", len(r.value))
	}
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(r.value, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pod, ok := object.(*corev1.Pod)
	if !ok || kind.Kind != "Pod" || pod.Name != e.pod() || pod.Status.PodIP != "172.16.0.12" ||
		!strings.Contains(pod.Annotations[cluster.NetworkStatusAnnotation], `"10.0.0.13"`) {
		t.Errorf("a %v is stored: %v", kind, object)
	}
}

func TestStoredPoolHasItsEntries(t *testing.T) {
	r, err := size(4000).poolRecord(1)
	if err != nil {
		t.Fatal(err)
	}
	var pool struct {
		Metadata struct{ Name, Namespace string }
		Spec     struct {
			Range       string
			Allocations map[string]struct{ PodRef string }
		}
	}
	if err := json.Unmarshal(r.value, &pool); err != nil {
		t.Fatal(err)
	}
	if pool.Metadata.Name != "10.0.16.0-20" || pool.Metadata.Namespace != cluster.PoolNamespace || pool.Spec.Range != "10.0.16.0/20" {
		t.Errorf("pool %+v with range %s", pool.Metadata, pool.Spec.Range)
	}
	if n := len(pool.Spec.Allocations); n != 400 || pool.Spec.Allocations["1"].PodRef != entry(4000).podRef() {
		t.Errorf("%d entries, the first is %+v", n, pool.Spec.Allocations["1"])
	}
	if len(r.value) > 1<<20 {
		t.Errorf("the pool has %d bytes: etcd might refuse it", len(r.value))
	}
}

// Every record is in one batch, in order, and no batch is too large for etcd.
func TestBatchesHaveEveryRecordOnce(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		records, bytes, want int
	}{
		{"no records", 0, 1, 0},
		{"a batch that is not full", 99, 1, 1},
		{"a full batch", 100, 1, 1},
		{"a full batch and one", 101, 1, 2},
		{"large records", 5, 600 << 10, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			next, count := 0, 0
			err := batches(first(tt.records, func(n int) (record, error) {
				return record{value: bytes.Repeat([]byte{byte(n)}, tt.bytes)}, nil
			}), func(from int, batch []record) {
				size := 0
				for i, r := range batch {
					if size += len(r.value); r.value[0] != byte(from+i) {
						t.Errorf("record %d is %d", from+i, r.value[0])
					}
				}
				if from != next || len(batch) > txnRecords || size > txnBytes {
					t.Errorf("a batch of %d records and %d bytes begins with %d, want %d", len(batch), size, from, next)
				}
				next, count = from+len(batch), count+1
			})
			if err != nil || next != tt.records || count != tt.want {
				t.Errorf("%d records in %d batches, want %d in %d: %v", next, count, tt.records, tt.want, err)
			}
		})
	}
}
