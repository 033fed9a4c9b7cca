package kube

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Save implements reaper.Ledgers. It writes the shards that changed, and the first
// ConfigMap last. A reader between two writes finds each entry as it was before or as it
// is after Save. Save keeps the data that other clients put into the ConfigMaps under keys
// of their own. It may be called again without a Load.
func (l *Ledgers) Save(ctx context.Context, ledger reaper.Ledger) error {
	shards := max(l.shards, 1)
	if shards == 1 && len(ledger.Encode()) > maxSingle {
		shards = reaper.LedgerShards
	}
	old := len(l.have) > 0 && hasOldForm(l.have[0].cm)
	if shards > max(l.shards, 1) || old {
		if err := l.prepare(ctx, shards); err != nil {
			return err
		}
	}
	for len(l.have) < shards {
		l.have = append(l.have, storedShard{})
	}
	parts := ledger.Shards(shards)
	for n := shards - 1; n >= 0; n-- {
		if err := l.write(ctx, n, shards, parts[n].Encode()); err != nil {
			return err
		}
	}
	l.shards = shards
	return l.dropOldForm(ctx, parts)
}

// prepare makes the next writes replace the ConfigMaps beyond the first, which do not
// count until the first one says so. Such a ConfigMap exists if it was shipped empty, or
// if an earlier run was killed before it wrote the first one.
//
// Another client may be about to do the same, with a ledger that is older. If it writes one
// of these ConfigMaps after this, the write here fails. If it wrote the first one before,
// that is seen here.
func (l *Ledgers) prepare(ctx context.Context, shards int) error {
	var first storedShard
	if len(l.have) > 0 {
		first = l.have[0]
	}
	have := []storedShard{first}
	for n := 1; n < max(shards, len(l.have)); n++ {
		cm, err := l.maps.Get(ctx, shardName(n), metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return Transient(err)
		}
		if err != nil {
			cm = nil
		} else {
			delete(cm.BinaryData, ledgerKey)
		}
		have = append(have, storedShard{cm: cm})
	}
	now, err := l.maps.Get(ctx, LedgerName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		now = nil
	case err != nil:
		return Transient(err)
	}
	if resourceVersionOf(now) != resourceVersionOf(first.cm) {
		return fmt.Errorf("%w: another client wrote ConfigMap %s", reaper.ErrAgain, LedgerName)
	}
	l.have = have
	return nil
}

// resourceVersionOf returns the resource version of a ConfigMap; empty if it does not exist.
func resourceVersionOf(cm *corev1.ConfigMap) string {
	if cm == nil {
		return ""
	}
	return cm.ResourceVersion
}

// write writes the nth shard, unless it is stored. The error wraps ErrAgain if another
// client wrote it since Load. The first ConfigMap loses its old form with the same write.
// The others keep theirs: it counts until the first one is written.
func (l *Ledgers) write(ctx context.Context, n, shards int, plain []byte) error {
	have := l.have[n]
	sum := sha256.Sum256(plain)
	counts := n > 0 || have.cm != nil && have.cm.Data[shardsKey] == strconv.Itoa(shards) && !hasOldForm(have.cm)
	if counts && have.sum == sum {
		return nil
	}
	if len(plain) > reaper.MaxLedgerShard {
		return fmt.Errorf("ConfigMap %s of the ledger would have %d bytes, at most %d are read", shardName(n), len(plain), reaper.MaxLedgerShard)
	}
	data, err := zip(plain, gzip.BestSpeed)
	if err != nil {
		return err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: shardName(n)}}
	if have.cm != nil {
		cm = have.cm.DeepCopy()
	}
	cm.BinaryData = merged(cm.BinaryData, ledgerKey, data)
	if n == 0 {
		delete(cm.BinaryData, oldLedgerKey)
		cm.Data = merged(cm.Data, shardsKey, strconv.Itoa(shards))
	}
	saved, err := l.put(ctx, have.cm, cm)
	if err != nil {
		return err
	}
	delete(saved.BinaryData, ledgerKey)
	l.have[n] = storedShard{saved, sum}
	return nil
}

// put replaces a ConfigMap, or creates it if there was none.
func (l *Ledgers) put(ctx context.Context, have, cm *corev1.ConfigMap) (saved *corev1.ConfigMap, err error) {
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
