package kube

import (
	"context"
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

// The ledger is stored in ConfigMaps: LedgerName, LedgerName-1, and so on. The key
// shardsKey of the first ConfigMap has their number. A shard of shardSize entries, each
// of about 40 bytes, stays below 512 KiB even if gzip does not make it smaller. An API
// server accepts twice as much.
const (
	LedgerName = "ip-reaper-ledger"

	ledgerKey = "ledger.json.gz"
	shardsKey = "shards"
	shardSize = 10_000
	maxShards = 10      // the roles in deploy/kustomize name as many
	maxLedger = 4 << 20 // bytes of one uncompressed shard: 400 for an entry
)

// Ledgers keeps the ledger in ConfigMaps of one namespace. It implements
// reaper.Ledgers. Its methods are for one goroutine.
type Ledgers struct {
	maps      corev1client.ConfigMapInterface
	namespace string
	have      []*corev1.ConfigMap // as loaded; nil for a missing one
}

// NewLedgers returns the ledger of a namespace.
func NewLedgers(core corev1client.ConfigMapsGetter, namespace string) *Ledgers {
	return &Ledgers{maps: core.ConfigMaps(namespace), namespace: namespace}
}

// Load implements reaper.Ledgers.
func (l *Ledgers) Load(ctx context.Context) (reaper.Ledger, error) {
	l.have = nil
	var ledger reaper.Ledger
	var damage error
	for n, shards := 0, 1; n < shards; n++ {
		var cm *corev1.ConfigMap
		err := Patiently(ctx, func(ctx context.Context) (err error) {
			cm, err = l.maps.Get(ctx, shardName(n), metav1.GetOptions{})
			return err
		})
		if apierrors.IsNotFound(err) {
			if n > 0 {
				damage = errors.Join(damage, fmt.Errorf("%w: ConfigMap %s is missing", reaper.ErrLedgerDamaged, shardName(n)))
			}
			l.have = append(l.have, nil)
			continue
		}
		if err != nil {
			return reaper.Ledger{}, err
		}
		l.have = append(l.have, cm)
		if n == 0 {
			shards = countShards(cm)
		}
		shard, err := shardIn(cm)
		if err != nil {
			damage = errors.Join(damage, fmt.Errorf("%s: %w", cm.Name, err))
			continue
		}
		ledger = ledger.Merge(shard)
	}
	return ledger, damage
}

// Capacity implements reaper.Ledgers.
func (*Ledgers) Capacity() int { return maxShards * shardSize }

// Save implements reaper.Ledgers. It writes the first ConfigMap last, so that a reader
// sees the old number of shards until then. It empties the shards that are no longer
// needed, and does not delete them. It keeps the data that other clients put into the
// ConfigMaps under keys of their own. It may be called again without a Load.
func (l *Ledgers) Save(ctx context.Context, ledger reaper.Ledger) error {
	shards := ledger.Shards(shardSize)
	count := len(shards)
	if count > maxShards {
		return fmt.Errorf("the ledger has %d entries, and there is room for %d", ledger.Len(), l.Capacity())
	}
	for len(shards) < len(l.have) {
		shards = append(shards, reaper.Ledger{})
	}
	saved := make([]*corev1.ConfigMap, len(shards))
	for n := len(shards) - 1; n >= 0; n-- {
		if n >= count && !hasShard(l.have[n]) {
			saved[n] = l.have[n]
			continue
		}
		data, err := zip(shards[n].Encode())
		if err != nil {
			return err
		}
		if saved[n], err = l.write(ctx, n, count, data); err != nil {
			return err
		}
	}
	l.have = saved
	return nil
}

// write writes the nth shard. The error wraps ErrAgain if another client wrote it since
// Load.
func (l *Ledgers) write(ctx context.Context, n, count int, data []byte) (*corev1.ConfigMap, error) {
	var have *corev1.ConfigMap
	var err error
	switch {
	case n < len(l.have):
		have = l.have[n]
	case n > 0:
		if have, err = l.beyond(ctx, n); err != nil {
			return nil, Transient(err)
		}
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: shardName(n)}}
	if have != nil {
		cm = have.DeepCopy()
	}
	cm.BinaryData = merged(cm.BinaryData, ledgerKey, data)
	cm.Data = merged(cm.Data, shardsKey, strconv.Itoa(count))
	var saved *corev1.ConfigMap
	if have != nil {
		saved, err = l.maps.Update(ctx, cm, metav1.UpdateOptions{})
	} else {
		saved, err = l.maps.Create(ctx, cm, metav1.CreateOptions{})
		err = inNamespace(err, l.namespace)
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), have != nil && apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: %w", reaper.ErrAgain, err)
	case err != nil:
		return nil, Transient(err)
	}
	return saved, nil
}

// beyond returns a shard that the first ConfigMap does not count; nil if there is none.
// Such a shard exists if it was shipped empty, if an earlier run emptied it, or if that
// run was killed before it wrote the first ConfigMap. Only the creation needs the right to
// create, which a role cannot limit to names.
func (l *Ledgers) beyond(ctx context.Context, n int) (*corev1.ConfigMap, error) {
	cm, err := l.maps.Get(ctx, shardName(n), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
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

// countShards returns the number of ConfigMaps. It returns 1 if the number is not valid.
func countShards(cm *corev1.ConfigMap) int {
	n, err := strconv.Atoi(cm.Data[shardsKey])
	if err != nil || n < 1 || n > maxShards {
		return 1
	}
	return n
}

// hasShard reports whether a ConfigMap exists and a run has written a shard into it.
func hasShard(cm *corev1.ConfigMap) bool {
	return cm != nil && cm.BinaryData[ledgerKey] != nil
}

// shardIn reads the shard in a ConfigMap. If the only data are those of another program, the
// shard was replaced.
func shardIn(cm *corev1.ConfigMap) (reaper.Ledger, error) {
	data, ours := cm.BinaryData[ledgerKey]
	if _, counts := cm.Data[shardsKey]; !ours && !counts && len(cm.Data)+len(cm.BinaryData) > 0 {
		return reaper.Ledger{}, fmt.Errorf("%w: the ConfigMap has data of another program, and none of ip-reaper", reaper.ErrLedgerDamaged)
	}
	return unpack(data)
}

// unpack reads a shard. Without data, the shard is empty. A shard that is larger than Save
// writes it is damaged.
func unpack(data []byte) (reaper.Ledger, error) {
	if len(data) == 0 {
		return reaper.Ledger{}, nil
	}
	plain, err := unzip(data, maxLedger+1)
	switch {
	case err != nil:
		return reaper.Ledger{}, fmt.Errorf("%w: %w", reaper.ErrLedgerDamaged, err)
	case len(plain) > maxLedger:
		return reaper.Ledger{}, fmt.Errorf("%w: it has more than %d bytes", reaper.ErrLedgerDamaged, maxLedger)
	}
	shard, err := reaper.DecodeLedger(plain)
	if err == nil && shard.Len() > shardSize {
		return reaper.Ledger{}, fmt.Errorf("%w: it has %d entries, at most %d are written", reaper.ErrLedgerDamaged, shard.Len(), shardSize)
	}
	return shard, err
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
