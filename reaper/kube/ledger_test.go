package kube

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	k8stesting "k8s.io/client-go/testing"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
)

// That the API server refuses a second writer is proved on a real one. Here is what is
// written where, and what a reader makes of it.

const ns = "reap"

var configMaps = schema.GroupResource{Resource: "configmaps"}

// large is a number of entries that need more than one ConfigMap.
const large = maxSingle / 16

// ledgerOf remembers n allocations, called from, from+1 and so on.
func ledgerOf(t testing.TB, from, n int) reaper.Ledger {
	t.Helper()
	seen := make(map[string]int64, n)
	for i := from; i < from+n; i++ {
		seen[ledgertest.Key(strconv.Itoa(i))] = 1_800_000_000 + int64(i)
	}
	l, err := reaper.DecodeLedger(ledgertest.Ledger{Seen: seen}.Encode())
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

// create stores a ConfigMap behind the back of the program.
func create(t *testing.T, client *fake.Clientset, cm *corev1.ConfigMap) {
	t.Helper()
	if _, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
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

func remove(t *testing.T, client *fake.Clientset, name string) {
	t.Helper()
	if err := client.CoreV1().ConfigMaps(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// mayNotCreate makes the account one that only plans.
func mayNotCreate(client *fake.Clientset) {
	client.PrependReactor("create", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(configMaps, "", errors.New("an account that only plans"))
	})
}

func zipped(t *testing.T, text []byte) []byte {
	t.Helper()
	data, err := zip(text, gzip.DefaultCompression)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// writes returns the writes since the last ClearActions, such as "update NAME".
func writes(t *testing.T, client *fake.Clientset) []string {
	t.Helper()
	var writes []string
	for _, a := range client.Actions() {
		if a, ok := a.(k8stesting.CreateAction); ok && a.GetVerb() != "get" {
			cm, ok := a.GetObject().(*corev1.ConfigMap)
			if !ok {
				t.Fatalf("a %T was written", a.GetObject())
			}
			writes = append(writes, a.GetVerb()+" "+cm.Name)
		}
	}
	return writes
}

func TestNoLedgerIsAnEmptyOne(t *testing.T) {
	_, ledger, err := load(t, fake.NewClientset())
	if err != nil || ledger.Len() != 0 {
		t.Errorf("Load = %d entries, %v, want none", ledger.Len(), err)
	}
}

func TestLedgerIsLoadedAsItWasSaved(t *testing.T) {
	for _, tt := range []struct{ entries, shards int }{
		{0, 1}, {1, 1}, {maxSingle/21 - 10, 1}, {large, reaper.LedgerShards},
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
			if got := stored(t, client, LedgerName).Data[shardsKey]; got != strconv.Itoa(tt.shards) {
				t.Errorf("the first ConfigMap speaks of %s shards, want %d", got, tt.shards)
			}
		})
	}
}

// The manifests make empty ConfigMaps, so that a role can name them and an account needs no
// right to create others. What else is in them stays.
func TestEmptyConfigMapsAreAnEmptyLedgerAndAreUpdated(t *testing.T) {
	client := fake.NewClientset()
	labels := map[string]string{"app.kubernetes.io/name": "ip-reaper"}
	for n := range reaper.LedgerShards {
		create(t, client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: shardName(n), Labels: labels}})
	}
	mayNotCreate(client)
	wantStored(t, client, reaper.Ledger{})
	for _, entries := range []int{3, large, 1} {
		want := ledgerOf(t, 0, entries)
		save(t, client, want)
		wantStored(t, client, want)
	}
	for n := range reaper.LedgerShards {
		if diff := cmp.Diff(labels, stored(t, client, shardName(n)).Labels); diff != "" {
			t.Errorf("labels of %s (-want +got):\n%s", shardName(n), diff)
		}
	}
}

// A full ledger of a cluster with 5,000 nodes fits, in ConfigMaps of at most 512 KiB.
func TestFullLedgerFits(t *testing.T) {
	if testing.Short() {
		t.Skip("it encodes 800,000 entries")
	}
	client := fake.NewClientset()
	want := fullLedger(t, (&Ledgers{}).Capacity(), 5000)
	save(t, client, want)
	wantStored(t, client, want)
	for n := range reaper.LedgerShards {
		if size := len(stored(t, client, shardName(n)).BinaryData[ledgerKey]); size > 512<<10 {
			t.Errorf("%s has %d bytes, want at most 512 KiB", shardName(n), size)
		}
	}
}

// fullLedger has so many entries: half of them times, and half of them nodes, which have
// names as long as those of a cloud.
func fullLedger(t testing.TB, entries, nodes int) reaper.Ledger {
	t.Helper()
	form := ledgertest.Ledger{Seen: make(map[string]int64), Nodes: make(map[string]string)}
	for i := range entries / 2 {
		key, node := ledgertest.Key(strconv.Itoa(i)), i%nodes
		form.Nodes[key] = fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", node>>12, node>>6&63, node&63)
		form.Seen[key] = 1_800_000_000 + int64(i)
	}
	l, err := reaper.DecodeLedger(form.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLedgerThatIsTooLargeIsNotWritten(t *testing.T) {
	client := fake.NewClientset()
	before := ledgerOf(t, 0, 3)
	save(t, client, before)
	// Names that only one entry has, and that are as long as those of an attack.
	form := ledgertest.Ledger{Nodes: make(map[string]string)}
	for i := range 200_000 {
		form.Nodes[ledgertest.Key(strconv.Itoa(i))] = fmt.Sprintf("%0250d", i)
	}
	huge, err := reaper.DecodeLedger(form.Encode())
	if err != nil {
		t.Fatal(err)
	}
	l, _, _ := load(t, client)
	if err := l.Save(t.Context(), huge); err == nil || errors.Is(err, reaper.ErrAgain) {
		t.Errorf("Save = %v, want a final error", err)
	}
	wantStored(t, client, before)
}

// A large ledger stays in its ConfigMaps when it becomes small again.
func TestLedgerGrowsAndEmpties(t *testing.T) {
	client := fake.NewClientset()
	for _, n := range []int{5, large, 5, 0, 2 * large, 1} {
		want := ledgerOf(t, n, n)
		save(t, client, want)
		wantStored(t, client, want)
	}
	for n := range reaper.LedgerShards {
		if size := len(stored(t, client, shardName(n)).BinaryData[ledgerKey]); size > 100 {
			t.Errorf("%s keeps %d bytes of an empty shard", shardName(n), size)
		}
	}
}

// The first ConfigMap says how many there are: until it is written, a reader
// sees what was there before. The last one is written before the others, and alone.
func TestFirstConfigMapIsWrittenLast(t *testing.T) {
	client := fake.NewClientset()
	save(t, client, ledgerOf(t, 0, 5))
	client.ClearActions()
	save(t, client, ledgerOf(t, 0, large))
	var others []string
	for n := 1; n < reaper.LedgerShards-1; n++ {
		others = append(others, "create "+shardName(n))
	}
	slices.Sort(others)
	want := append([]string{"update " + LedgerName, "create " + shardName(reaper.LedgerShards-1)}, others...)
	got := writes(t, client)
	if len(got) > 3 {
		slices.Sort(got[2 : len(got)-1]) // they are written at the same time
	}
	if diff := cmp.Diff(append(want, "update "+LedgerName), got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// slow makes each request take a second, and notes how many there were at the same time.
type slow struct {
	corev1client.ConfigMapInterface
	now, most, hurried atomic.Int64
}

func (s *slow) take() {
	s.most.Store(max(s.most.Load(), s.now.Add(1)))
	time.Sleep(time.Second)
	s.now.Add(-1)
}

func (s *slow) takeWrite(ctx context.Context) {
	if ctx.Value(unhurriedKey{}) == nil {
		s.hurried.Add(1)
	}
	s.take()
}

func (s *slow) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.ConfigMap, error) {
	s.take()
	return s.ConfigMapInterface.Get(ctx, name, o)
}

func (s *slow) Create(ctx context.Context, cm *corev1.ConfigMap, o metav1.CreateOptions) (*corev1.ConfigMap, error) {
	s.takeWrite(ctx)
	return s.ConfigMapInterface.Create(ctx, cm, o)
}

func (s *slow) Update(ctx context.Context, cm *corev1.ConfigMap, o metav1.UpdateOptions) (*corev1.ConfigMap, error) {
	s.takeWrite(ctx)
	return s.ConfigMapInterface.Update(ctx, cm, o)
}

// A ledger of 32 ConfigMaps does not take the time of 32 requests one after the other.
func TestLedgerIsReadAndWrittenAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		l := NewLedgers(client.CoreV1(), ns)
		server := &slow{ConfigMapInterface: l.maps}
		l.maps = server
		took := func(what string, want time.Duration, do func() error) {
			began := time.Now()
			if err := do(); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(began); got != want {
				t.Errorf("to %s took %v, want %v", what, got, want)
			}
		}
		reading := func() error {
			_, err := l.Load(t.Context())
			return err
		}
		took("read that there is none", time.Second, reading)
		// Two requests announce the growth. The others are read in four rounds, and the first
		// one again. The last one is written, then 30 in four rounds, then the first one.
		took("make it large", 13*time.Second, func() error { return l.Save(t.Context(), ledgerOf(t, 0, large)) })
		took("read it", 5*time.Second, reading)
		took("change it", 6*time.Second, func() error { return l.Save(t.Context(), ledgerOf(t, large, large)) })
		if most := server.most.Load(); most != ledgerRequests {
			t.Errorf("%d requests at the same time, want %d", most, ledgerRequests)
		}
		if n := server.hurried.Load(); n > 0 {
			t.Errorf("%d writes do not wait for their turn", n)
		}
	})
}

// Only shards that changed are written, and none if nothing changed.
func TestOnlyChangedShardsAreWritten(t *testing.T) {
	client := fake.NewClientset()
	before, one := ledgerOf(t, 0, large), ledgerOf(t, large, 1)
	save(t, client, before)
	owner := 0
	for n, s := range one.Shards(reaper.LedgerShards) {
		if s.Len() > 0 {
			owner = n
		}
	}
	for _, tt := range []struct {
		ledger reaper.Ledger
		want   []string
	}{
		{before, nil}, {before.Merge(one), []string{"update " + shardName(owner)}}, {before.Merge(one), nil},
	} {
		client.ClearActions()
		save(t, client, tt.ledger)
		if diff := cmp.Diff(tt.want, writes(t, client)); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		wantStored(t, client, tt.ledger)
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
	save(t, client, ledgerOf(t, 0, 8))
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
	if n := len(client.Actions()); n != 1 {
		t.Errorf("%d requests, want 1", n)
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

// unzipped returns the stored form of a shard.
func unzipped(t *testing.T, cm *corev1.ConfigMap) []byte {
	t.Helper()
	plain, err := unzip(cm.BinaryData[ledgerKey], reaper.MaxLedgerShard)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(plain)
}
