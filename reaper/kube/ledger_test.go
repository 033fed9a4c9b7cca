package kube

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// The fake clientset enforces no resourceVersion. That a second writer is
// refused is proved on a real API server; here is only what is written where.

const ns = "reap"

var configMaps = schema.GroupResource{Resource: "configmaps"}

// ledgerOf remembers n allocations, called from, from+1 and so on.
func ledgerOf(t *testing.T, from, n int) reaper.Ledger {
	t.Helper()
	var text strings.Builder
	text.WriteString(`{"version":1,"seen":{`)
	for i := from; i < from+n; i++ {
		if i > from {
			text.WriteByte(',')
		}
		// As long as the hash that stands there.
		fmt.Fprintf(&text, `"%022d":%d`, i, 1_800_000_000+i)
	}
	text.WriteString(`}}`)
	l, err := reaper.DecodeLedger([]byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func load(t *testing.T, client *fake.Clientset) (*Ledgers, reaper.Ledger, error) {
	t.Helper()
	l := NewLedgers(client.CoreV1(), ns)
	ledger, err := l.Load(t.Context())
	return l, ledger, err
}

// save does what a run does: it loads, and replaces what it loaded.
func save(t *testing.T, client *fake.Clientset, ledger reaper.Ledger) {
	t.Helper()
	l, _, err := load(t, client)
	if err != nil && !errors.Is(err, reaper.ErrLedgerDamaged) {
		t.Fatal(err)
	}
	if err := l.Save(t.Context(), ledger); err != nil {
		t.Fatal(err)
	}
}

// wantStored checks that the next run loads this ledger, and nothing is damaged.
func wantStored(t *testing.T, client *fake.Clientset, want reaper.Ledger) {
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

// edit changes a ConfigMap behind the back of the program.
func edit(t *testing.T, client *fake.Clientset, name string, change func(*corev1.ConfigMap)) {
	t.Helper()
	cm := stored(t, client, name)
	change(cm)
	if _, err := client.CoreV1().ConfigMaps(ns).Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func zipped(t *testing.T, text []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestNoLedgerIsAnEmptyOne(t *testing.T) {
	_, ledger, err := load(t, fake.NewClientset())
	if err != nil || ledger.Len() != 0 {
		t.Errorf("Load = %d entries, %v, want none", ledger.Len(), err)
	}
}

// The manifests make empty ConfigMaps, so that a role can name them and needs no right to
// create others.
func TestEmptyConfigMapsAreAnEmptyLedger(t *testing.T) {
	empty := func(n int) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: shardName(n)}}
	}
	client := fake.NewClientset(empty(0), empty(1), empty(2))
	client.PrependReactor("create", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(configMaps, "", errors.New("no"))
	})
	if _, ledger, err := load(t, client); err != nil || ledger.Len() != 0 {
		t.Errorf("Load = %d entries, %v, want none", ledger.Len(), err)
	}
	want := ledgerOf(t, 0, 2*shardSize+5)
	save(t, client, want)
	wantStored(t, client, want)
}

func TestLedgerIsLoadedAsItWasSaved(t *testing.T) {
	for _, tt := range []struct{ entries, shards int }{
		{0, 1}, {1, 1}, {shardSize, 1}, {shardSize + 1, 2}, {2*shardSize + 5, 3},
	} {
		t.Run(strconv.Itoa(tt.entries), func(t *testing.T) {
			client := fake.NewClientset()
			want := ledgerOf(t, 0, tt.entries)
			save(t, client, want)
			wantStored(t, client, want)
			all, err := client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(all.Items) != tt.shards {
				t.Errorf("%d ConfigMaps, want %d", len(all.Items), tt.shards)
			}
			for _, cm := range all.Items {
				if size := len(cm.BinaryData[ledgerKey]); size > 512<<10 {
					t.Errorf("%s has %d bytes, want at most 512 KiB", cm.Name, size)
				}
			}
			if got := stored(t, client, LedgerName).Data[shardsKey]; got != strconv.Itoa(tt.shards) {
				t.Errorf("the first ConfigMap speaks of %s shards, want %d", got, tt.shards)
			}
		})
	}
}

// The comment beside shardSize promises this even where gzip gains nothing.
func TestShardFitsEvenIfItCannotBeCompressed(t *testing.T) {
	if size := len(ledgerOf(t, 0, shardSize).Encode()); size > 512<<10 {
		t.Errorf("a full shard has %d bytes before compression, want at most 512 KiB", size)
	}
}

func TestLedgerThatIsTooLargeIsNotWritten(t *testing.T) {
	client := fake.NewClientset()
	before := ledgerOf(t, 0, 3)
	save(t, client, before)
	l, _, _ := load(t, client)
	if err := l.Save(t.Context(), ledgerOf(t, 0, maxShards*shardSize+1)); err == nil || errors.Is(err, reaper.ErrAgain) {
		t.Errorf("Save = %v, want a final error", err)
	}
	wantStored(t, client, before)
}

func TestLedgerGrowsAndShrinks(t *testing.T) {
	client := fake.NewClientset()
	for _, n := range []int{2*shardSize + 1, 5, 0, shardSize + 1, 3 * shardSize, 1} {
		want := ledgerOf(t, n, n)
		save(t, client, want)
		wantStored(t, client, want)
	}
	if size := len(stored(t, client, LedgerName+"-2").BinaryData[ledgerKey]); size > 100 {
		t.Errorf("a shard that is not needed any more keeps %d bytes", size)
	}
}

// The first ConfigMap says how many there are: until it is written, a reader
// sees what was there before.
func TestFirstConfigMapIsWrittenLast(t *testing.T) {
	client := fake.NewClientset()
	save(t, client, ledgerOf(t, 0, 5))
	client.ClearActions()
	save(t, client, ledgerOf(t, 0, 2*shardSize+1))
	var writes []string
	for _, a := range client.Actions() {
		switch a := a.(type) {
		case k8stesting.CreateActionImpl:
			writes = append(writes, "create "+nameOf(t, a.Object))
		case k8stesting.UpdateActionImpl:
			writes = append(writes, "update "+nameOf(t, a.Object))
		}
	}
	want := []string{"create " + LedgerName + "-2", "create " + LedgerName + "-1", "update " + LedgerName}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func nameOf(t *testing.T, obj runtime.Object) string {
	t.Helper()
	cm, ok := obj.(*corev1.ConfigMap)
	if !ok {
		t.Fatalf("a %T was written", obj)
	}
	return cm.Name
}

// The shipped manifests have the ConfigMaps without data, and an account that only plans
// has no right to create one. What else is in them stays.
func TestEmptyConfigMapsAreAnEmptyLedgerAndAreUpdated(t *testing.T) {
	client := fake.NewClientset()
	labels := map[string]string{"app.kubernetes.io/name": "ip-reaper"}
	for n := range maxShards {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: shardName(n), Labels: labels}}
		if _, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	client.PrependReactor("create", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(configMaps, "", errors.New("an account that only plans"))
	})
	wantStored(t, client, reaper.Ledger{})
	for _, entries := range []int{3, maxShards * shardSize, 2*shardSize + 1, 1} {
		want := ledgerOf(t, 0, entries)
		save(t, client, want)
		wantStored(t, client, want)
	}
	for n := range maxShards {
		if diff := cmp.Diff(labels, stored(t, client, shardName(n)).Labels); diff != "" {
			t.Errorf("labels of %s (-want +got):\n%s", shardName(n), diff)
		}
	}
}

// A run may end between any two writes.
func TestLedgerSurvivesARunThatEndsBetweenItsWrites(t *testing.T) {
	before, cut, want := ledgerOf(t, 0, 5), ledgerOf(t, 0, 2*shardSize+1), ledgerOf(t, 7, 2*shardSize+1)
	for written := range 3 {
		t.Run(strconv.Itoa(written)+" written", func(t *testing.T) {
			client := fake.NewClientset()
			save(t, client, before)
			client.PrependReactor("*", "configmaps", func(a k8stesting.Action) (bool, runtime.Object, error) {
				if a.GetVerb() == "get" {
					return false, nil, nil
				}
				written--
				return written < 0, nil, apierrors.NewForbidden(configMaps, LedgerName, errors.New("killed"))
			})
			l, _, _ := load(t, client)
			if err := l.Save(t.Context(), cut); err == nil {
				t.Fatal("Save succeeded, want it cut short")
			}
			client.ReactionChain = client.ReactionChain[1:]

			wantStored(t, client, before)
			save(t, client, want)
			wantStored(t, client, want)
		})
	}
}

func TestDamagedLedger(t *testing.T) {
	first, second := LedgerName, LedgerName+"-1"
	head, tail := ledgerOf(t, 0, 5), ledgerOf(t, 5, 3)
	setData := func(data []byte) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { cm.BinaryData[ledgerKey] = data }
	}
	for _, tt := range []struct {
		name   string
		of     string
		change func(*corev1.ConfigMap)
	}{
		{"no gzip in the first", first, setData([]byte("hello"))},
		{"no gzip in the second", second, setData([]byte("hello"))},
		{"cut off", second, func(cm *corev1.ConfigMap) {
			data := cm.BinaryData[ledgerKey]
			cm.BinaryData[ledgerKey] = data[:len(data)-9]
		}},
		{"a flipped bit", first, func(cm *corev1.ConfigMap) {
			cm.BinaryData[ledgerKey][len(cm.BinaryData[ledgerKey])/2] ^= 1
		}},
		{"garbage behind it", second, func(cm *corev1.ConfigMap) {
			cm.BinaryData[ledgerKey] = append(cm.BinaryData[ledgerKey], "garbage"...)
		}},
		{"no JSON", first, setData(zipped(t, []byte("hello")))},
		{"JSON of something else", first, setData(zipped(t, []byte(`["hello"]`)))},
		{"no version", second, setData(zipped(t, []byte(`{"seen":{}}`)))},
		{"a newer version", second, setData(zipped(t, []byte(`{"version":2,"seen":{"a":1}}`)))},
		{"a time that is none", second, setData(zipped(t, []byte(`{"version":1,"seen":{"a":"yesterday"}}`)))},
		{"a time before there were any", second, setData(zipped(t, []byte(`{"version":1,"seen":{"a":-99999999999999}}`)))},
		{"more entries than a run writes", second, setData(zipped(t, ledgerOf(t, 0, shardSize+1).Encode()))},
		{"too much space behind it", second, setData(zipped(t, append(tail.Encode(), bytes.Repeat([]byte(" "), maxLedger)...)))},
		{"a bomb", second, setData(zipped(t, append(bytes.Repeat([]byte(" "), maxLedger), tail.Encode()...)))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := fake.NewClientset()
			put(t, client, head, tail)
			wantStored(t, client, head.Merge(tail))
			edit(t, client, tt.of, tt.change)
			_, got, err := load(t, client)
			if !errors.Is(err, reaper.ErrLedgerDamaged) || !strings.Contains(err.Error(), tt.of+":") {
				t.Errorf("Load: %v, want that %s is damaged", err, tt.of)
			}
			whole := head
			if tt.of == first {
				whole = tail
			}
			if !got.Equal(whole) {
				t.Errorf("Load = %s, want the other ConfigMap's %s", got.Encode(), whole.Encode())
			}
			save(t, client, tail)
			wantStored(t, client, tail)
		})
	}
}

// put stores a ledger in as many shards as it is given.
func put(t *testing.T, client *fake.Clientset, shards ...reaper.Ledger) {
	t.Helper()
	for n, shard := range shards {
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: shardName(n)},
			Data:       map[string]string{shardsKey: strconv.Itoa(len(shards))},
			BinaryData: map[string][]byte{ledgerKey: zipped(t, shard.Encode())},
		}
		if _, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMissingShardIsDamageAndMadeAgain(t *testing.T) {
	client := fake.NewClientset()
	put(t, client, ledgerOf(t, 0, 5), ledgerOf(t, 5, 3), ledgerOf(t, 8, 1))
	if err := client.CoreV1().ConfigMaps(ns).Delete(t.Context(), LedgerName+"-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, got, err := load(t, client)
	if !errors.Is(err, reaper.ErrLedgerDamaged) || !strings.Contains(err.Error(), LedgerName+"-1") {
		t.Errorf("Load: %v, want that %s-1 is not there", err, LedgerName)
	}
	if want := ledgerOf(t, 0, 5).Merge(ledgerOf(t, 8, 1)); !got.Equal(want) {
		t.Errorf("Load = %s, want what is there: %s", got.Encode(), want.Encode())
	}
	want := ledgerOf(t, 7, 2*shardSize+1)
	save(t, client, want)
	wantStored(t, client, want)
}

// A number of shards that was edited away loses the others, which only restarts
// their grace periods; it must not keep the next ledger from being written.
func TestNumberOfShardsThatWasEdited(t *testing.T) {
	want := ledgerOf(t, 7, shardSize+1)
	for name, change := range map[string]func(*corev1.ConfigMap){
		"word":     func(cm *corev1.ConfigMap) { cm.Data[shardsKey] = "many" },
		"none":     func(cm *corev1.ConfigMap) { cm.Data = nil },
		"zero":     func(cm *corev1.ConfigMap) { cm.Data[shardsKey] = "0" },
		"negative": func(cm *corev1.ConfigMap) { cm.Data[shardsKey] = "-1" },
		"too many": func(cm *corev1.ConfigMap) { cm.Data[shardsKey] = "11" },
		"huge":     func(cm *corev1.ConfigMap) { cm.Data[shardsKey] = "99999999999999999999" },
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			put(t, client, ledgerOf(t, 0, 5), ledgerOf(t, 5, 3))
			edit(t, client, LedgerName, change)
			if _, got, err := load(t, client); err != nil || !got.Equal(ledgerOf(t, 0, 5)) {
				t.Errorf("Load = %s, %v, want the first shard", got.Encode(), err)
			}
			save(t, client, want)
			wantStored(t, client, want)
		})
	}
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

// A ledger that could not be read may be whole, and is no damage.
func TestLedgerThatCannotBeReadIsAnError(t *testing.T) {
	for _, of := range []string{LedgerName, LedgerName + "-1"} {
		client := fake.NewClientset()
		put(t, client, ledgerOf(t, 0, 5), ledgerOf(t, 5, 3))
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
		{"server busy", "update", apierrors.NewTooManyRequestsError("busy"), true},
		{"server broken", "create", apierrors.NewInternalError(errors.New("etcd")), true},
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
			if err == nil || errors.Is(err, reaper.ErrAgain) != tt.again {
				t.Errorf("Save = %v, want to try again: %v", err, tt.again)
			}
		})
	}
}

// A run whose Save is refused loads and saves again.
func TestLedgerIsLoadedAgain(t *testing.T) {
	client := fake.NewClientset()
	put(t, client, ledgerOf(t, 0, 5), ledgerOf(t, 5, 3))
	l, _, err := load(t, client)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := l.Load(t.Context()); err != nil || again.Len() != 8 {
		t.Errorf("Load = %d entries, %v, want 8", again.Len(), err)
	}
	client.ClearActions()
	want := ledgerOf(t, 7, 4)
	if err := l.Save(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if n := len(client.Actions()); n != 2 {
		t.Errorf("%d requests, want 2: one for each ConfigMap", n)
	}
	wantStored(t, client, want)
}

// Save replaces what Load returned, and nothing that it did not see.
func TestSaveWithoutLoadOverwritesNothing(t *testing.T) {
	client := fake.NewClientset()
	want := ledgerOf(t, 0, 5)
	save(t, client, want)
	if err := NewLedgers(client.CoreV1(), ns).Save(t.Context(), ledgerOf(t, 7, 1)); !errors.Is(err, reaper.ErrAgain) {
		t.Errorf("Save = %v, want ErrAgain", err)
	}
	wantStored(t, client, want)
}
