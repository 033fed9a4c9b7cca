package state

import (
	"bytes"
	"compress/gzip"
	"errors"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
)

// That the API server refuses a second writer is tested on a real one. These tests cover what
// is written where, and what a reader makes of it.

const ns = "reap"

var configMaps = schema.GroupResource{Resource: "configmaps"}

// ledgerOf remembers n allocations, called from, from+1 and so on.
func ledgerOf(t testing.TB, from, n int) ledger.Ledger {
	t.Helper()
	seen := make(map[string]int64, n)
	for i := from; i < from+n; i++ {
		seen[ledgertest.Key(strconv.Itoa(i))] = 1_800_000_000 + int64(i)
	}
	l, err := ledger.Decode(ledgertest.Ledger{Seen: seen}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func load(t *testing.T, client *fake.Clientset) (*Ledgers, ledger.Ledger, error) {
	t.Helper()
	l := NewLedgers(client.CoreV1(), ns)
	ledger, err := l.Load(t.Context())
	return l, ledger, err
}

// save does what a run does: it loads, and replaces what it loaded.
func save(t *testing.T, client *fake.Clientset, memory ledger.Ledger) {
	t.Helper()
	l, _, err := load(t, client)
	if err != nil && !errors.Is(err, ledger.ErrDamaged) {
		t.Fatal(err)
	}
	if err := l.Save(t.Context(), memory); err != nil {
		t.Fatal(err)
	}
}

// wantStored checks that the next run loads this ledger, and nothing is damaged.
func wantStored(t *testing.T, client *fake.Clientset, want ledger.Ledger) {
	t.Helper()
	if _, got, err := load(t, client); err != nil || !got.Equal(want) {
		t.Errorf("Load = %d entries, %v, want the %d that were saved", got.Len(), err, want.Len())
	}
}

func stored(t *testing.T, client *fake.Clientset, name string) *corev1.ConfigMap {
	t.Helper()
	cm, err := client.CoreV1().ConfigMaps(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return cm
}

// create stores a ConfigMap behind the program's back.
func create(t *testing.T, client *fake.Clientset, cm *corev1.ConfigMap) {
	t.Helper()
	if _, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// edit changes a ConfigMap behind the program's back.
func edit(t *testing.T, client *fake.Clientset, name string, change func(*corev1.ConfigMap)) {
	t.Helper()
	cm := stored(t, client, name)
	change(cm)
	if _, err := client.CoreV1().ConfigMaps(ns).Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, client *fake.Clientset, name string) {
	t.Helper()
	if err := client.CoreV1().ConfigMaps(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func zipped(t *testing.T, text []byte) []byte {
	t.Helper()
	data := zip(text, gzip.DefaultCompression)
	return data
}

// A ledger may be as long as an API server accepts. A longer one is not written, nor read.
func TestLongestLedger(t *testing.T) {
	longest := func(n int) ledger.Ledger { // the identity of the last store makes it as long as asked
		l := ledgerOf(t, 0, 1)
		l.Stores = map[string]string{"other": strings.Repeat("x", 1<<18)} // its length has as many bytes as in the end
		l.Stores = map[string]string{"other": strings.Repeat("x", 1<<18+n-len(l.Encode()))}
		return l
	}
	client := fake.NewClientset()
	whole := longest(maxPlain)
	save(t, client, whole)
	wantStored(t, client, whole)
	l, _, _ := load(t, client)
	if err := l.Save(t.Context(), longest(maxPlain+1)); err == nil || errors.Is(err, ipam.ErrAgain) {
		t.Errorf("Save = %v, want a final error", err)
	}
	wantStored(t, client, whole)
	edit(t, client, LedgerName, func(cm *corev1.ConfigMap) {
		cm.BinaryData[ledgerKey] = zipped(t, longest(maxPlain+1).Encode())
	})
	if _, _, err := load(t, client); !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("Load = %v, want ErrDamaged", err)
	}
}

// If another client keeps its own data in the ConfigMap, a run does not remove it.
func TestSaveKeepsTheDataOfOthers(t *testing.T) {
	client := fake.NewClientset()
	create(t, client, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: LedgerName, Labels: map[string]string{"their": "label"}},
		Data:       map[string]string{"settings": "theirs"}, BinaryData: map[string][]byte{"icon": []byte("theirs")},
	})
	for n := range 3 {
		want := ledgerOf(t, n, n)
		save(t, client, want)
		wantStored(t, client, want)
	}
	cm := stored(t, client, LedgerName)
	if cm.Labels["their"] != "label" || cm.Data["settings"] != "theirs" || !bytes.Equal(cm.BinaryData["icon"], []byte("theirs")) {
		t.Errorf("data were lost: %v", cm)
	}
}

func TestSaveSaysWhetherToTryAgain(t *testing.T) {
	for _, tt := range []struct {
		name  string
		verb  string
		err   error
		again bool
	}{
		{"another client wrote it", "update", apierrors.NewConflict(configMaps, LedgerName, errors.New("modified")), true},
		{"another client deleted it", "update", apierrors.NewNotFound(configMaps, LedgerName), true},
		{"another client created it", "create", apierrors.NewAlreadyExists(configMaps, LedgerName), true},
		{"forbidden", "update", apierrors.NewForbidden(configMaps, LedgerName, errors.New("no")), false},
		{"no such namespace", "create", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, ns), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := fake.NewClientset()
			if tt.verb == "update" {
				save(t, client, ledgerOf(t, 0, 1))
			}
			client.PrependReactor(tt.verb, "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
				return true, nil, tt.err
			})
			l, _, err := load(t, client)
			if err != nil {
				t.Fatal(err)
			}
			err = l.Save(t.Context(), ledgerOf(t, 0, 2))
			if err == nil || errors.Is(err, ipam.ErrAgain) != tt.again {
				t.Errorf("Save = %v, want to try again: %v", err, tt.again)
			}
		})
	}
}

// unzipped returns the stored form of a ledger.
func unzipped(t *testing.T, cm *corev1.ConfigMap) []byte {
	t.Helper()
	plain, err := unzip(cm.BinaryData[ledgerKey], maxPlain)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(plain)
}
