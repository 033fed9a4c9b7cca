package kube

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// The ledger is stored in ConfigMaps. A small one has all entries in the first ConfigMap,
// LedgerName. A ledger that was once larger than that has a ConfigMap for each of
// reaper.LedgerShards shards: LedgerName, LedgerName-1, and so on. The key shardsKey of
// the first ConfigMap has their number, 1 or reaper.LedgerShards. It grows once, and never
// shrinks: a client that has loaded many shards writes the first one only if that changed,
// and would not see that the others no longer count.
const (
	LedgerName = "ip-reaper-ledger"

	ledgerKey = "ledger.gz"
	shardsKey = "shards"
	maxSingle = 512 << 10 // bytes of the stored form of a ledger that is in one ConfigMap
)

// maxLedgerEntries is the largest Len of a ledger: 20 bytes of a ConfigMap for each.
const maxLedgerEntries = reaper.LedgerShards * 25_000

// Ledgers keeps the ledger in ConfigMaps of one namespace. It implements
// reaper.Ledgers. Its methods are for one goroutine.
type Ledgers struct {
	maps      corev1client.ConfigMapInterface
	namespace string
	shards    int           // the number that counts, as loaded; 0 before
	have      []storedShard // as loaded or written
}

// A storedShard is what is kept of a ConfigMap.
type storedShard struct {
	cm  *corev1.ConfigMap // without the shard; nil for a missing one
	sum [sha256.Size]byte // of the shard's stored form before its compression; zero if it has none that could be read
}

// NewLedgers returns the ledger of a namespace.
func NewLedgers(core corev1client.ConfigMapsGetter, namespace string) *Ledgers {
	return &Ledgers{maps: core.ConfigMaps(namespace), namespace: namespace}
}

// Capacity implements reaper.Ledgers.
func (*Ledgers) Capacity() int { return maxLedgerEntries }

// Load implements reaper.Ledgers.
func (l *Ledgers) Load(ctx context.Context) (reaper.Ledger, error) {
	l.have, l.shards = nil, 1
	first, err := l.get(ctx, 0)
	if err != nil {
		return reaper.Ledger{}, err
	}
	count := countShards(first)
	if count > reaper.LedgerShards {
		return reaper.Ledger{}, fmt.Errorf("%w (ConfigMap %s says that there are %d ConfigMaps, this program reads %d)",
			reaper.ErrLedgerNewer, LedgerName, count, reaper.LedgerShards)
	}
	if count == reaper.LedgerShards {
		l.shards = reaper.LedgerShards
	}
	ledger, err := l.loadAll(ctx, first)
	if err == nil && count != l.shards {
		err = fmt.Errorf("%w: ConfigMap %s says that there are %d ConfigMaps", reaper.ErrLedgerDamaged, LedgerName, count)
	}
	return ledger, err
}

// loadAll reads the ConfigMaps of a ledger, of which the first one was read. It returns
// what could be decoded of them, and nothing if a later version wrote one of them. It reads
// several of them at the same time.
func (l *Ledgers) loadAll(ctx context.Context, first *corev1.ConfigMap) (reaper.Ledger, error) {
	l.have = make([]storedShard, l.shards)
	decoded, damage := make([]reaper.Ledger, l.shards), make([]error, l.shards)
	err := someAtOnce(ctx, l.shards, func(n int) (err error) {
		cm := first
		if n > 0 {
			if cm, err = l.get(ctx, n); err != nil {
				return err
			}
			if cm == nil {
				damage[n] = fmt.Errorf("%w: ConfigMap %s is missing", reaper.ErrLedgerDamaged, shardName(n))
			}
		}
		l.have[n].cm = cm
		decoded[n], err = l.keep(n, cm)
		switch {
		case errors.Is(err, reaper.ErrLedgerNewer):
			return fmt.Errorf("ConfigMap %s: %w", cm.Name, err)
		case err != nil:
			damage[n] = fmt.Errorf("%s: %w", cm.Name, err)
		}
		return nil
	})
	if err != nil {
		l.have = nil // with versions of this reading, a Save would replace what it has not seen
		return reaper.Ledger{}, err
	}
	return decoded[0].Merge(decoded[1:]...), errors.Join(damage...)
}

// keep decodes the nth shard, and keeps the rest of its ConfigMap, which may be nil.
func (l *Ledgers) keep(n int, cm *corev1.ConfigMap) (reaper.Ledger, error) {
	if cm == nil {
		return reaper.Ledger{}, nil
	}
	data, ours := cm.BinaryData[ledgerKey]
	if err := checkOwner(cm, ours); err != nil || len(data) == 0 {
		return reaper.Ledger{}, err
	}
	delete(cm.BinaryData, ledgerKey)
	plain, err := unpack(data, reaper.MaxLedgerShard)
	if err != nil {
		return reaper.Ledger{}, err
	}
	shard, err := reaper.DecodeLedger(plain)
	switch {
	case err != nil:
		return reaper.Ledger{}, err
	case !shard.IsShard(n, l.shards):
		return reaper.Ledger{}, fmt.Errorf("%w: it has entries of other ConfigMaps", reaper.ErrLedgerDamaged)
	}
	l.have[n].sum = sha256.Sum256(plain)
	return shard, nil
}

// checkOwner returns an error if the only data of a ConfigMap are those of another program:
// the shard was replaced. A ConfigMap without data is an empty shard.
func checkOwner(cm *corev1.ConfigMap, ours bool) error {
	if _, counts := cm.Data[shardsKey]; !ours && !counts && len(cm.Data)+len(cm.BinaryData) > 0 {
		return fmt.Errorf("%w: the ConfigMap has data of another program, and none of ip-reaper", reaper.ErrLedgerDamaged)
	}
	return nil
}

// unpack decompresses a shard. A shard that is larger than Save writes it is damaged.
func unpack(data []byte, most int) ([]byte, error) {
	plain, err := unzip(data, int64(most)+1)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", reaper.ErrLedgerDamaged, err)
	case len(plain) > most:
		return nil, fmt.Errorf("%w: it has more than %d bytes", reaper.ErrLedgerDamaged, most)
	}
	return plain, nil
}

// get returns the nth ConfigMap, or nil if it does not exist.
func (l *Ledgers) get(ctx context.Context, n int) (cm *corev1.ConfigMap, err error) {
	err = Patiently(ctx, func(ctx context.Context) (err error) {
		cm, err = l.maps.Get(ctx, shardName(n), metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // it does not exist
	}
	return cm, err
}

// shardName returns the name of the nth ConfigMap, from 0.
func shardName(n int) string {
	if n == 0 {
		return LedgerName
	}
	return LedgerName + "-" + strconv.Itoa(n)
}

// countShards returns the number of ConfigMaps, which the first one has. It returns 1 if
// the first one does not exist, or has no such number.
func countShards(first *corev1.ConfigMap) int {
	if first == nil {
		return 1
	}
	n, err := strconv.Atoi(first.Data[shardsKey])
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// merged returns a map with a value more. It keeps the values of other keys, which
// another client may have put there.
func merged[V any](have map[string]V, key string, value V) map[string]V {
	all := maps.Clone(have)
	if all == nil {
		all = make(map[string]V)
	}
	all[key] = value
	return all
}
