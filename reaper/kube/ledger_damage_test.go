package kube

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 2, 8. If a ConfigMap of the ledger is damaged, the grace periods of its own
// allocations begin again, and of no others.
func TestDamagedLedger(t *testing.T) {
	whole := ledgerOf(t, 0, large)
	shards := whole.Shards(reaper.LedgerShards)
	setData := func(data []byte) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { cm.BinaryData[ledgerKey] = data }
	}
	plainly := func(change func([]byte) []byte) func(*testing.T, *corev1.ConfigMap) {
		return func(t *testing.T, cm *corev1.ConfigMap) {
			plain := change(unzipped(t, cm))
			cm.BinaryData[ledgerKey] = zipped(t, plain)
		}
	}
	summed := func(body []byte) []byte { return binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body)) }
	for _, tt := range []struct {
		name   string
		of     int
		change func(*testing.T, *corev1.ConfigMap)
	}{
		{"no gzip in the first", 0, func(_ *testing.T, cm *corev1.ConfigMap) { setData([]byte("hello"))(cm) }},
		{"no gzip in the second", 1, func(_ *testing.T, cm *corev1.ConfigMap) { setData([]byte("hello"))(cm) }},
		{"cut off", 1, func(_ *testing.T, cm *corev1.ConfigMap) {
			data := cm.BinaryData[ledgerKey]
			cm.BinaryData[ledgerKey] = data[:len(data)-9]
		}},
		{"a flipped bit", 0, func(_ *testing.T, cm *corev1.ConfigMap) {
			cm.BinaryData[ledgerKey][len(cm.BinaryData[ledgerKey])/2] ^= 1
		}},
		{"garbage behind it", 1, func(_ *testing.T, cm *corev1.ConfigMap) {
			cm.BinaryData[ledgerKey] = append(cm.BinaryData[ledgerKey], "garbage"...)
		}},
		{"a flipped bit before the compression", 1, plainly(func(plain []byte) []byte { plain[len(plain)/2] ^= 1; return plain })},
		{"another version and a wrong checksum", 1, plainly(func(plain []byte) []byte { plain[0]++; return plain })},
		{"a version that never was", 1, plainly(func(plain []byte) []byte { plain[0] = 1; return summed(plain[:len(plain)-4]) })},
		{"no ledger", 0, plainly(func([]byte) []byte { return []byte("hello") })},
		{"the entries of another ConfigMap", 1, plainly(func([]byte) []byte { return shards[2].Encode() })},
		{"the entries of all ConfigMaps", 1, plainly(func([]byte) []byte { return whole.Encode() })},
		{"more bytes than a run writes", 31, plainly(func(plain []byte) []byte {
			return append(plain, make([]byte, reaper.MaxLedgerShard)...)
		})},
		{"a bomb", 1, plainly(func(plain []byte) []byte { return append(make([]byte, 64<<20), plain...) })},
		{"more entries than there are bytes", 1, plainly(func([]byte) []byte {
			return summed([]byte{2, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x7f})
		})},
		{"only the data of another program", 1, func(_ *testing.T, cm *corev1.ConfigMap) {
			cm.BinaryData = map[string][]byte{"icon": []byte("theirs")}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := fake.NewClientset()
			save(t, client, whole)
			edit(t, client, shardName(tt.of), func(cm *corev1.ConfigMap) { tt.change(t, cm) })
			_, got, err := load(t, client)
			if !errors.Is(err, reaper.ErrLedgerDamaged) || !strings.Contains(err.Error(), shardName(tt.of)+":") {
				t.Errorf("Load: %v, want that %s is damaged", err, shardName(tt.of))
			}
			wantWithout(t, got, shards, tt.of)
			save(t, client, whole)
			wantStored(t, client, whole)
		})
	}
}

// wantWithout checks that a ledger has all shards but one.
func wantWithout(t *testing.T, got reaper.Ledger, shards []reaper.Ledger, lost int) {
	t.Helper()
	for n, s := range got.Shards(reaper.LedgerShards) {
		want := shards[n]
		if n == lost {
			want = reaper.Ledger{}
		}
		if !s.Equal(want) {
			t.Errorf("shard %d has %d entries, want %d", n, s.Len(), want.Len())
		}
	}
}

func TestMissingShardIsDamageAndMadeAgain(t *testing.T) {
	client := fake.NewClientset()
	whole := ledgerOf(t, 0, large)
	save(t, client, whole)
	remove(t, client, shardName(7))
	_, got, err := load(t, client)
	if !errors.Is(err, reaper.ErrLedgerDamaged) || !strings.Contains(err.Error(), shardName(7)+" is missing") {
		t.Errorf("Load: %v, want that %s is not there", err, shardName(7))
	}
	wantWithout(t, got, whole.Shards(reaper.LedgerShards), 7)
	save(t, client, whole)
	wantStored(t, client, whole)
}

// If the first ConfigMap is deleted, every grace period begins again. What the others
// have does not come back when the ledger grows again.
func TestDeletedLedgerIsEmptyAndStaysSo(t *testing.T) {
	client := fake.NewClientset()
	save(t, client, ledgerOf(t, 0, large))
	remove(t, client, LedgerName)
	wantStored(t, client, reaper.Ledger{})
	for _, n := range []int{1, large} {
		want := ledgerOf(t, 10*large, n)
		save(t, client, want)
		wantStored(t, client, want)
	}
}

// A number of shards that was edited loses entries, which only restarts their grace
// periods. The next ledger is whole.
func TestNumberOfShardsThatWasEdited(t *testing.T) {
	whole, want := ledgerOf(t, 0, large), ledgerOf(t, 7, large)
	for name, change := range map[string]func(*corev1.ConfigMap){
		"word":     func(cm *corev1.ConfigMap) { cm.Data[shardsKey] = "many" },
		"none":     func(cm *corev1.ConfigMap) { cm.Data = nil },
		"one":      func(cm *corev1.ConfigMap) { cm.Data[shardsKey] = "1" },
		"zero":     func(cm *corev1.ConfigMap) { cm.Data[shardsKey] = "0" },
		"negative": func(cm *corev1.ConfigMap) { cm.Data[shardsKey] = "-1" },
		"others":   func(cm *corev1.ConfigMap) { cm.Data[shardsKey] = "16" },
		"huge":     func(cm *corev1.ConfigMap) { cm.Data[shardsKey] = "99999999999999999999" },
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			save(t, client, whole)
			edit(t, client, LedgerName, change)
			_, got, err := load(t, client)
			if damaged := name == "others"; errors.Is(err, reaper.ErrLedgerDamaged) != damaged || err != nil && !damaged || !got.Equal(whole.Shards(reaper.LedgerShards)[0]) {
				t.Errorf("Load = %d entries, %v, want the first shard", got.Len(), err)
			}
			save(t, client, want)
			wantStored(t, client, want)
		})
	}
	t.Run("of a small ledger", func(t *testing.T) {
		client := fake.NewClientset()
		save(t, client, ledgerOf(t, 0, 100))
		edit(t, client, LedgerName, func(cm *corev1.ConfigMap) { cm.Data[shardsKey] = "32" })
		if _, got, err := load(t, client); !errors.Is(err, reaper.ErrLedgerDamaged) || got.Len() > 0 {
			t.Errorf("Load = %d entries, %v, want none and ErrLedgerDamaged", got.Len(), err)
		}
		save(t, client, want)
		wantStored(t, client, want)
	})
}

func TestWhatOthersPutOnTheConfigMapStays(t *testing.T) {
	client := fake.NewClientset()
	save(t, client, ledgerOf(t, 0, 1))
	edit(t, client, LedgerName, func(cm *corev1.ConfigMap) {
		cm.Labels = map[string]string{"team": "net"}
		cm.BinaryData = nil
	})
	if _, got, err := load(t, client); err != nil || got.Len() != 0 {
		t.Errorf("Load without data = %d entries, %v, want an empty ledger", got.Len(), err)
	}
	save(t, client, ledgerOf(t, 0, 2))
	if got := stored(t, client, LedgerName).Labels["team"]; got != "net" {
		t.Errorf("label = %q, want it kept", got)
	}
}

// If another client keeps data of its own in the ConfigMaps, a run does not remove them.
func TestDataOfOthersInALedgerStays(t *testing.T) {
	client := fake.NewClientset()
	save(t, client, ledgerOf(t, 0, large))
	for n := range 3 {
		edit(t, client, shardName(n), func(cm *corev1.ConfigMap) {
			cm.Data = merged(cm.Data, "settings", "theirs")
			cm.BinaryData = merged(cm.BinaryData, "icon", []byte("theirs"))
		})
	}
	for _, entries := range []int{1, 2 * large} {
		want := ledgerOf(t, 7, entries)
		save(t, client, want)
		wantStored(t, client, want)
		for n := range 3 {
			if cm := stored(t, client, shardName(n)); cm.Data["settings"] != "theirs" || !bytes.Equal(cm.BinaryData["icon"], []byte("theirs")) {
				t.Errorf("%d entries: %s lost data: %v %v", entries, cm.Name, cm.Data, cm.BinaryData)
			}
		}
	}
}

// A ledger that could not be read may be whole, and is no damage.
func TestLedgerThatCannotBeReadIsAnError(t *testing.T) {
	for _, of := range []string{LedgerName, LedgerName + "-1"} {
		client := fake.NewClientset()
		save(t, client, ledgerOf(t, 0, large))
		client.PrependReactor("get", "configmaps", func(a k8stesting.Action) (bool, runtime.Object, error) {
			get, ok := a.(k8stesting.GetActionImpl)
			return ok && get.Name == of, nil, apierrors.NewForbidden(configMaps, of, errors.New("no"))
		})
		_, got, err := load(t, client)
		if err == nil || errors.Is(err, reaper.ErrLedgerDamaged) || got.Len() != 0 {
			t.Errorf("Load = %d entries, %v, want none and an error that is no damage", got.Len(), err)
		}
	}
}
