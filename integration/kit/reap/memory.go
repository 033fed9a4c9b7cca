package reap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
)

// The ConfigMap of the ledger, and its key there.
const (
	LedgerName = "ip-reaper-ledger"
	LedgerKey  = "ledger.gz"
)

// A Memory is what runs remember in one namespace: the ledger, the journals and the lock.
type Memory struct {
	Cluster   *cluster.Cluster
	Namespace string
}

// Unlock deletes the lock: a killed process leaves it behind for half a minute.
func (m Memory) Unlock(ctx context.Context) error {
	return m.Cluster.Kube.CoordinationV1().Leases(m.Namespace).
		DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

// Forget deletes ledger, journals and lock.
func (m Memory) Forget(ctx context.Context) error {
	return errors.Join(m.Unlock(ctx), m.Cluster.Kube.CoreV1().ConfigMaps(m.Namespace).
		DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
}

// ForgetLedger deletes the ledger if there is one.
func (m Memory) ForgetLedger(ctx context.Context) error {
	err := m.Cluster.Kube.CoreV1().ConfigMaps(m.Namespace).Delete(ctx, LedgerName, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// BeginLedger stores an empty ledger if there is none. All ledgers that start this way have the
// same keys.
func (m Memory) BeginLedger(ctx context.Context) error {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: LedgerName},
		BinaryData: map[string][]byte{LedgerKey: Zip(ledgertest.Ledger{Salt: [16]byte{1}}.Encode())},
	}
	_, err := m.Cluster.Kube.CoreV1().ConfigMaps(m.Namespace).Create(ctx, cm, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// InstallLedger creates the first ConfigMap of the ledger as an installation does: empty.
func (m Memory) InstallLedger(ctx context.Context) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: LedgerName}}
	_, err := m.Cluster.Kube.CoreV1().ConfigMaps(m.Namespace).Create(ctx, cm, metav1.CreateOptions{})
	return err
}

// InstallPolicy installs a policy, in place of any other.
func (m Memory) InstallPolicy(ctx context.Context, text string) error {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: state.PolicyName}, Data: map[string]string{"policy.yaml": text}}
	_, err := m.Cluster.Kube.CoreV1().ConfigMaps(m.Namespace).Create(ctx, cm, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = m.Cluster.Kube.CoreV1().ConfigMaps(m.Namespace).Update(ctx, cm, metav1.UpdateOptions{})
	}
	return err
}

// Seen returns when each entry of the ledger was first seen ownerless, in seconds, by a hash of its
// identity. It is empty if there is no ledger.
func (m Memory) Seen(ctx context.Context) (map[string]int64, error) {
	_, ledger, err := m.ledger(ctx)
	if apierrors.IsNotFound(err) {
		return map[string]int64{}, nil
	}
	if err != nil {
		return nil, err
	}
	return ledger.Seen, nil
}

// Age moves the times at which everything in the ledger was seen, restored and doubted into the
// past. It forgets the figures of the census unless they are doubted, so that the next run has
// something to write.
func (m Memory) Age(ctx context.Context, by time.Duration) error {
	cm, ledger, err := m.ledger(ctx)
	if err != nil {
		return err
	}
	for _, times := range []map[string]int64{ledger.Seen, ledger.Restored} {
		for id := range times {
			times[id] -= int64(by.Seconds())
		}
	}
	if ledger.Doubt.At > 0 {
		ledger.Doubt.At -= int64(by.Seconds())
	} else {
		ledger.Figures = ledgertest.Figures{}
	}
	cm.BinaryData[LedgerKey] = Zip(ledger.Encode())
	_, err = m.Cluster.Kube.CoreV1().ConfigMaps(m.Namespace).Update(ctx, cm, metav1.UpdateOptions{})
	return err
}

// ledger reads the first ConfigMap of the ledger.
func (m Memory) ledger(ctx context.Context) (*corev1.ConfigMap, ledgertest.Ledger, error) {
	cm, err := m.Cluster.Kube.CoreV1().ConfigMaps(m.Namespace).Get(ctx, LedgerName, metav1.GetOptions{})
	if err != nil {
		return nil, ledgertest.Ledger{}, err
	}
	ledger, err := DecodeLedger(cm.BinaryData[LedgerKey])
	if err != nil {
		return nil, ledgertest.Ledger{}, fmt.Errorf("read ledger: %w", err)
	}
	return cm, ledger, nil
}

// JournalParts returns the ConfigMaps of all journals.
func (m Memory) JournalParts(ctx context.Context) ([]corev1.ConfigMap, error) {
	list, err := m.Cluster.Kube.CoreV1().ConfigMaps(m.Namespace).
		List(ctx, metav1.ListOptions{LabelSelector: state.JournalLabel + "=true"})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Journals returns the IDs of the runs that have journals.
func (m Memory) Journals(ctx context.Context) ([]string, error) {
	parts, err := m.JournalParts(ctx)
	var runs []string
	for _, cm := range parts {
		if id := cm.Labels[state.RunLabel]; !slices.Contains(runs, id) {
			runs = append(runs, id)
		}
	}
	return runs, err
}
