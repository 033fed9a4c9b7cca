package state

import (
	"compress/gzip"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// Save implements ledger.Store. A reader finds either the old ledger or the new one: parts
// count once the first ConfigMap names them. Save keeps data that other clients put there under
// their own keys. It may be called again without a Load.
func (l *Ledgers) Save(ctx context.Context, next ledger.Ledger) error {
	plain := next.Encode()
	if len(plain) > l.Capacity() {
		return fmt.Errorf("ConfigMap %s of the ledger would have %d bytes, it has room for %d", LedgerName, len(plain), l.Capacity())
	}
	data, err := zip(plain, gzip.BestSpeed)
	if err != nil {
		return err
	}
	old, err := l.parts(ctx)
	if err != nil {
		return err
	}
	head := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: LedgerName}}
	if l.head != nil {
		head = l.head.DeepCopy()
	}
	if len(data) <= l.maxHead {
		head.BinaryData = merged(head.BinaryData, ledgerKey, data)
		delete(head.Data, partsKey)
	} else {
		names, err := l.createParts(ctx, data)
		if err != nil {
			return err
		}
		head.Data = merged(head.Data, partsKey, strings.Join(names, " "))
	}
	saved, err := l.put(ctx, head)
	if err != nil {
		return err
	}
	delete(saved.BinaryData, ledgerKey)
	l.head = saved
	return l.remove(ctx, old)
}

// parts returns the names of all existing parts: of the ledger that was loaded, and of saves
// that did not finish. Once this client has written the first ConfigMap, none of them counts
// any more, nor ever will: the clients that made them loaded that ConfigMap earlier, and can no
// longer write it.
func (l *Ledgers) parts(ctx context.Context) (names []string, err error) {
	if !l.isLarge() {
		return nil, nil
	}
	err = kube.Patiently(ctx, func(ctx context.Context) error {
		list, err := l.maps.List(ctx, metav1.ListOptions{LabelSelector: LedgerLabel + "=part"})
		if err != nil {
			return err
		}
		for _, cm := range list.Items {
			if strings.HasPrefix(cm.Name, LedgerPartName+"-") {
				names = append(names, cm.Name)
			}
		}
		return nil
	})
	return names, kube.Transient(err)
}

// createParts stores data in new parts, and returns their names. If it fails, it removes those that
// it made, because they may take the last room of a quota.
func (l *Ledgers) createParts(ctx context.Context, data []byte) (names []string, err error) {
	save := strings.ToLower(rand.Text())
	for part := range slices.Chunk(data, l.maxHead/2) {
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name:   fmt.Sprintf("%s-%s-%d", LedgerPartName, save, len(names)+1),
				Labels: map[string]string{LedgerLabel: "part"},
			},
			BinaryData: map[string][]byte{ledgerKey: part},
			Immutable:  new(true),
		}
		names = append(names, cm.Name) // if the answer is lost, the part may be stored
		if _, err := l.maps.Create(ctx, cm, metav1.CreateOptions{}); err != nil {
			_ = l.remove(ctx, names) // what is left does not count, and the next Save removes it
			return nil, fmt.Errorf("create a part of the ledger: %w", kube.Transient(err))
		}
	}
	return names, nil
}

// remove deletes parts.
func (l *Ledgers) remove(ctx context.Context, names []string) error {
	for _, name := range names {
		err := kube.Patiently(ctx, func(ctx context.Context) error {
			return l.maps.Delete(ctx, name, metav1.DeleteOptions{})
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%w: delete ConfigMap %s: %w", ledger.ErrLeft, name, err)
		}
	}
	return nil
}

// put replaces the first ConfigMap if it is still as loaded, or creates it if there was none.
// The error wraps ErrAgain if another client has written it since.
func (l *Ledgers) put(ctx context.Context, head *corev1.ConfigMap) (saved *corev1.ConfigMap, err error) {
	if l.head != nil {
		saved, err = l.maps.Update(ctx, head, metav1.UpdateOptions{})
	} else {
		saved, err = l.maps.Create(ctx, head, metav1.CreateOptions{})
		err = inNamespace(err, l.namespace)
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), l.head != nil && apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: %w", ipam.ErrAgain, err)
	case err != nil:
		return nil, kube.Transient(err)
	}
	return saved, nil
}
