package kube

import (
	"compress/gzip"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// The form of earlier versions: JSON in up to ten ConfigMaps, among which a run dealt the
// entries at will. Load reads it. Save replaces it: the first ConfigMap loses it together
// with the first write of the new form. If the first ConfigMap has both, an earlier version
// wrote last, and only its form counts.
const (
	oldLedgerKey   = "ledger.json.gz"
	oldShardSize   = 10_000
	maxOldShards   = 10
	maxOldUnzipped = 4 << 20 // bytes of one shard: 400 for an entry
)

// hasOldForm reports whether a ConfigMap exists and has a shard of an earlier version.
func hasOldForm(cm *corev1.ConfigMap) bool {
	if cm == nil {
		return false
	}
	_, old := cm.BinaryData[oldLedgerKey]
	return old
}

// loadOldForm loads the ledger of an earlier version.
func (l *Ledgers) loadOldForm(ctx context.Context, first *corev1.ConfigMap) (reaper.Ledger, error) {
	shards := countShards(first)
	if shards > maxOldShards {
		shards = 1 // that is no number that an earlier version writes
	}
	return l.loadAll(ctx, first, shards, func(_ int, cm *corev1.ConfigMap) (reaper.Ledger, error) {
		if cm == nil {
			return reaper.Ledger{}, nil
		}
		data, ours := cm.BinaryData[oldLedgerKey]
		if err := checkOwner(cm, ours); err != nil || len(data) == 0 {
			return reaper.Ledger{}, err
		}
		plain, err := unpack(data, maxOldUnzipped)
		if err != nil {
			return reaper.Ledger{}, err
		}
		shard, err := reaper.DecodeLedger(plain)
		if err == nil && shard.Len() > oldShardSize {
			return reaper.Ledger{}, fmt.Errorf("%w: it has %d entries, at most %d were written", reaper.ErrLedgerDamaged, shard.Len(), oldShardSize)
		}
		return shard, err
	})
}

// dropOldForm removes the form of earlier versions from the ConfigMaps after the first,
// where it counts no more. The parts are those of the ledger that was written.
func (l *Ledgers) dropOldForm(ctx context.Context, parts []reaper.Ledger) error {
	for n := 1; n < len(l.have); n++ {
		have := l.have[n]
		if !hasOldForm(have.cm) {
			continue
		}
		cm := have.cm.DeepCopy()
		delete(cm.BinaryData, oldLedgerKey)
		delete(cm.Data, shardsKey)
		if n < len(parts) {
			data, err := zip(parts[n].Encode(), gzip.BestSpeed)
			if err != nil {
				return err
			}
			cm.BinaryData = merged(cm.BinaryData, ledgerKey, data)
		}
		saved, err := l.put(ctx, have.cm, cm)
		if err != nil {
			return err
		}
		delete(saved.BinaryData, ledgerKey)
		l.have[n].cm = saved
	}
	return nil
}
