package kube

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// growingKey is a key of the first ConfigMap while a client writes the others. Its value is
// another one for each client.
const growingKey = "growing"

// prepare makes the next writes replace the ConfigMaps beyond the first, which do not
// count until the first one says so. Such a ConfigMap exists if it was shipped empty, or
// if an earlier run was killed before it wrote the first one.
//
// Another client may be doing the same, with a ledger that is older. First prepare changes
// the first ConfigMap, so that this client can no longer make its ConfigMaps count. Then
// prepare reads the versions of the others. If the other client writes one of them after
// that, the write here fails. At last prepare looks whether the first one is unchanged. If it
// is not, a third client may have written the versions that were read.
func (l *Ledgers) prepare(ctx context.Context, shards int) error {
	have := make([]storedShard, max(shards, len(l.have)))
	var err error
	if have[0].cm, err = l.announce(ctx); err != nil {
		return err
	}
	err = someAtOnce(ctx, len(have)-1, func(i int) (err error) {
		have[i+1].cm, err = l.read(ctx, i+1)
		return err
	})
	if err != nil {
		return err
	}
	now, err := l.read(ctx, 0)
	if err != nil {
		return err
	}
	if resourceVersionOf(now) != have[0].cm.ResourceVersion {
		return errOtherClient
	}
	l.have = have
	return nil
}

// errOtherClient says that another client wrote the first ConfigMap.
var errOtherClient = fmt.Errorf("%w: another client wrote ConfigMap %s", reaper.ErrAgain, LedgerName)

// announce changes the first ConfigMap as it was loaded, but for what it means. It returns it
// without its shard.
func (l *Ledgers) announce(ctx context.Context) (*corev1.ConfigMap, error) {
	now, err := l.get(ctx, 0)
	if err != nil {
		return nil, Transient(err)
	}
	loaded := ""
	if len(l.have) > 0 {
		loaded = resourceVersionOf(l.have[0].cm)
	}
	if resourceVersionOf(now) != loaded {
		return nil, errOtherClient
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: LedgerName}}
	if now != nil {
		cm = now.DeepCopy()
	}
	if _, counts := cm.Data[shardsKey]; !counts {
		cm.Data = merged(cm.Data, shardsKey, "1")
	}
	cm.Data = merged(cm.Data, growingKey, rand.Text())
	saved, err := l.put(ctx, now, cm)
	if err != nil {
		return nil, err
	}
	delete(saved.BinaryData, ledgerKey)
	return saved, nil
}

// read returns the nth ConfigMap without its shard, or nil if it does not exist.
func (l *Ledgers) read(ctx context.Context, n int) (*corev1.ConfigMap, error) {
	cm, err := l.get(ctx, n)
	if err != nil || cm == nil {
		return nil, Transient(err)
	}
	delete(cm.BinaryData, ledgerKey)
	return cm, nil
}

// resourceVersionOf returns the resource version of a ConfigMap; empty if it does not exist.
func resourceVersionOf(cm *corev1.ConfigMap) string {
	if cm == nil {
		return ""
	}
	return cm.ResourceVersion
}
