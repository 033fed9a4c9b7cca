package kube

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"
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
	ctx = unhurried(ctx)
	shards := max(l.shards, 1)
	if shards == 1 && len(ledger.Encode()) > maxSingle {
		shards = reaper.LedgerShards
	}
	if shards > max(l.shards, 1) {
		if err := l.prepare(ctx, shards); err != nil {
			return err
		}
	}
	for len(l.have) < shards {
		l.have = append(l.have, storedShard{})
	}
	if err := l.writeAll(ctx, ledger.Shards(shards)); err != nil {
		return err
	}
	l.shards = shards
	return nil
}

// writeAll writes the shards that changed. It writes the first one last, and the last one
// alone before the others: if two clients write the same shards, one of them fails there,
// and does not hinder the other one any more.
func (l *Ledgers) writeAll(ctx context.Context, parts []reaper.Ledger) error {
	rest := len(parts) - 1 // without the first one
	for begun := false; rest > 0 && !begun; rest-- {
		var err error
		if begun, err = l.write(ctx, rest, parts); err != nil {
			return err
		}
	}
	err := someAtOnce(ctx, rest, func(i int) error {
		_, err := l.write(ctx, rest-i, parts)
		return err
	})
	if err != nil {
		return err
	}
	_, err = l.write(ctx, 0, parts)
	return err
}

// ledgerRequests is how many ConfigMaps of the ledger are read or written at the same time.
const ledgerRequests = 8

// someAtOnce calls do with each number below n, for some of them at the same time. After an
// error, it begins no other one. It returns the first error.
func someAtOnce(ctx context.Context, n int, do func(i int) error) error {
	g, going := errgroup.WithContext(ctx)
	g.SetLimit(ledgerRequests)
	for i := range n {
		g.Go(func() error {
			if err := going.Err(); err != nil {
				return err
			}
			return do(i)
		})
	}
	return g.Wait()
}

// write writes the nth shard, and reports whether that was necessary. The error wraps
// ErrAgain if another client wrote it since Load.
func (l *Ledgers) write(ctx context.Context, n int, parts []reaper.Ledger) (necessary bool, err error) {
	have, shards, plain := l.have[n], len(parts), parts[n].Encode()
	sum := sha256.Sum256(plain)
	counts := n > 0 || have.cm != nil && have.cm.Data[shardsKey] == strconv.Itoa(shards)
	if counts && have.sum == sum {
		return false, nil
	}
	if len(plain) > reaper.MaxLedgerShard {
		return true, fmt.Errorf("ConfigMap %s of the ledger would have %d bytes, at most %d are read", shardName(n), len(plain), reaper.MaxLedgerShard)
	}
	data, err := zip(plain, gzip.BestSpeed)
	if err != nil {
		return true, err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: shardName(n)}}
	if have.cm != nil {
		cm = have.cm.DeepCopy()
	}
	cm.BinaryData = merged(cm.BinaryData, ledgerKey, data)
	if n == 0 {
		cm.Data = merged(cm.Data, shardsKey, strconv.Itoa(shards))
		delete(cm.Data, growingKey)
	}
	saved, err := l.put(ctx, have.cm, cm)
	if err != nil {
		return true, err
	}
	delete(saved.BinaryData, ledgerKey)
	l.have[n] = storedShard{saved, sum}
	return true, nil
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
