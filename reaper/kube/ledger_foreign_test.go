package kube

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// The ledger needs one key each of Data and BinaryData. If another client keeps data of
// its own in the ConfigMap, a run does not remove them: neither where it writes a shard,
// nor where it empties one.
func TestDataOfOthersInALedgerStays(t *testing.T) {
	client := fake.NewClientset()
	put(t, client, ledgerOf(t, 0, 5), ledgerOf(t, 5, 3))
	for n := range 3 {
		if n == 2 {
			put := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: shardName(n)}}
			if _, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), put, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		edit(t, client, shardName(n), func(cm *corev1.ConfigMap) {
			cm.Data = merged(cm.Data, "settings", "theirs")
			cm.BinaryData = merged(cm.BinaryData, "icon", []byte("theirs"))
		})
	}
	for _, entries := range []int{1, 2*shardSize + 1, 3} {
		want := ledgerOf(t, 7, entries)
		save(t, client, want)
		wantStored(t, client, want)
		for n := range 3 {
			if cm := stored(t, client, shardName(n)); cm.Data["settings"] != "theirs" || string(cm.BinaryData["icon"]) != "theirs" {
				t.Errorf("%d entries: %s lost data: %v %v", entries, cm.Name, cm.Data, cm.BinaryData)
			}
		}
	}
}

// A ConfigMap that has the name of a shard and only the data of another program is not
// an empty shard.
func TestShardOfAnotherProgramIsDamage(t *testing.T) {
	for name, change := range map[string]func(*corev1.ConfigMap){
		"text":   func(cm *corev1.ConfigMap) { cm.Data, cm.BinaryData = map[string]string{"settings": "theirs"}, nil },
		"binary": func(cm *corev1.ConfigMap) { cm.Data, cm.BinaryData = nil, map[string][]byte{"icon": []byte("theirs")} },
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			put(t, client, ledgerOf(t, 0, 5), ledgerOf(t, 5, 3))
			edit(t, client, LedgerName+"-1", change)
			_, got, err := load(t, client)
			if !errors.Is(err, reaper.ErrLedgerDamaged) || !strings.Contains(err.Error(), LedgerName+"-1: ") {
				t.Errorf("Load: %v, want that %s-1 is not of ip-reaper", err, LedgerName)
			}
			if !got.Equal(ledgerOf(t, 0, 5)) {
				t.Errorf("Load = %s, want the first shard", got.Encode())
			}
			theirs := stored(t, client, LedgerName+"-1")
			save(t, client, ledgerOf(t, 7, 1)) // one shard is enough, so the other is not needed
			wantStored(t, client, ledgerOf(t, 7, 1))
			if diff := cmp.Diff(theirs, stored(t, client, LedgerName+"-1")); diff != "" {
				t.Errorf("the other program's ConfigMap was changed:\n%s", diff)
			}
		})
	}
}

// An account that only plans may not create a ConfigMap. It can save a ledger that does
// not need the missing one.
func TestMissingShardThatIsNotNeededIsNotMade(t *testing.T) {
	client := fake.NewClientset()
	put(t, client, ledgerOf(t, 0, 5), ledgerOf(t, 5, 3))
	if err := client.CoreV1().ConfigMaps(ns).Delete(t.Context(), LedgerName+"-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	client.PrependReactor("create", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(configMaps, "", errors.New("no"))
	})
	want := ledgerOf(t, 7, 4)
	save(t, client, want)
	wantStored(t, client, want)
}
