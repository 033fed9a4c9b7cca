package kube

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// recordedOld returns a cluster with the ConfigMaps that an earlier version wrote, and the
// ledger in them.
func recordedOld(t *testing.T) (*fake.Clientset, reaper.Ledger) {
	t.Helper()
	data, err := os.ReadFile("testdata/ledger-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var list corev1.ConfigMapList
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset()
	for _, cm := range list.Items {
		cm.ResourceVersion = ""
		create(t, client, &cm)
	}
	if data, err = os.ReadFile("../testdata/ledger-v1.json"); err != nil {
		t.Fatal(err)
	}
	ledger, err := reaper.DecodeLedger(data)
	if err != nil {
		t.Fatal(err)
	}
	return client, ledger
}

// The first run of a new program reads what the last run of the old one wrote, and its
// first Save replaces all of that.
func TestLedgerOfAnEarlierVersionIsReadAndReplaced(t *testing.T) {
	for _, entries := range []int{0, large} {
		client, before := recordedOld(t)
		wantStored(t, client, before)
		want := before.Merge(ledgerOf(t, 0, entries+1))
		save(t, client, want)
		wantStored(t, client, want)
		all, err := client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, cm := range all.Items {
			if hasOldForm(&cm) {
				t.Errorf("%d entries: %s still has the old form", entries, cm.Name)
			}
		}
	}
}

// The earlier version ran once more, after an upgrade that was taken back. What the later
// one had stored before is out of date.
func TestEarlierVersionThatWroteLastCounts(t *testing.T) {
	for _, entries := range []int{5, large} {
		client, before := recordedOld(t)
		old := stored(t, client, LedgerName).BinaryData[oldLedgerKey]
		save(t, client, ledgerOf(t, 0, entries))
		edit(t, client, LedgerName, func(cm *corev1.ConfigMap) {
			cm.BinaryData[oldLedgerKey], cm.Data[shardsKey] = old, "1"
		})
		_, got, err := load(t, client)
		if err != nil || got.Len() > before.Len() || !got.Merge(before).Equal(before) {
			t.Errorf("Load = %d entries, %v, want those of the old form only", got.Len(), err)
		}
		want := ledgerOf(t, 7, entries)
		save(t, client, want)
		wantStored(t, client, want)
	}
}

func TestDamagedLedgerOfAnEarlierVersion(t *testing.T) {
	setData := func(data []byte) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { cm.BinaryData[oldLedgerKey] = data }
	}
	for _, tt := range []struct {
		name   string
		of     int
		change func(*corev1.ConfigMap)
	}{
		{"no gzip", 0, setData([]byte("hello"))},
		{"no JSON", 1, setData(zipped(t, []byte("hello")))},
		{"a newer version", 2, setData(zipped(t, []byte(`{"version":2,"seen":{}}`)))},
		{"a bomb", 1, setData(zipped(t, []byte(strings.Repeat(" ", maxOldUnzipped)+`{"version":1,"seen":{}}`)))},
		{"only the data of another program", 1, func(cm *corev1.ConfigMap) {
			cm.Data, cm.BinaryData = map[string]string{"settings": "theirs"}, nil
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, before := recordedOld(t)
			edit(t, client, shardName(tt.of), tt.change)
			_, got, err := load(t, client)
			if !errors.Is(err, reaper.ErrLedgerDamaged) || !strings.Contains(err.Error(), shardName(tt.of)+":") {
				t.Errorf("Load: %v, want that %s is damaged", err, shardName(tt.of))
			}
			if got.Len() == 0 || got.Len() >= before.Len() {
				t.Errorf("Load = %d entries of %d, want those of the other ConfigMaps", got.Len(), before.Len())
			}
			save(t, client, before)
			wantStored(t, client, before)
		})
	}
}

// An earlier version reads the ledger of this one as an empty one: it never finds its own
// old times again.
func TestEarlierVersionFindsNoOldTimes(t *testing.T) {
	client, before := recordedOld(t)
	save(t, client, before.Merge(ledgerOf(t, 0, large)))
	for n := range maxOldShards {
		cm := stored(t, client, shardName(n))
		if _, found := cm.BinaryData[oldLedgerKey]; found {
			t.Errorf("%s has the old form", cm.Name)
		}
	}
	if n, _ := strconv.Atoi(stored(t, client, LedgerName).Data[shardsKey]); n <= maxOldShards {
		t.Errorf("the first ConfigMap counts %d, which an earlier version takes for its own", n)
	}
}
