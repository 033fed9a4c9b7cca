package state

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// LedgerName is the ConfigMap in which the ledger is stored, by one conditional write.
const LedgerName = "ip-reaper-ledger"

const (
	ledgerKey = "ledger.gz"

	// maxPlain is the size of the longest ledger, in bytes before compression. An API server accepts
	// ConfigMaps of 1 MiB. gzip makes incompressible data a little longer, and other clients may have
	// data there.
	maxPlain = 1020 << 10
)

// Ledgers keeps the ledger in a ConfigMap. It implements ledger.Store. It is not safe for concurrent
// use, except for Changed.
type Ledgers struct {
	core      corev1client.CoreV1Interface
	maps      corev1client.ConfigMapInterface
	namespace string
	have      *corev1.ConfigMap // as loaded or written, without the ledger; nil for none
	known     bool              // the last Load could tell what is stored
}

// NewLedgers returns the ledger of a namespace.
func NewLedgers(core corev1client.CoreV1Interface, namespace string) *Ledgers {
	return &Ledgers{core: core, maps: core.ConfigMaps(namespace), namespace: namespace}
}

// Capacity implements ledger.Store.
func (*Ledgers) Capacity() int { return maxPlain }

// Load implements ledger.Store.
func (l *Ledgers) Load(ctx context.Context) (ledger.Ledger, error) {
	l.have, l.known = nil, false
	cm, err := l.get(ctx)
	if cm == nil || err != nil {
		l.known = err == nil
		return ledger.Ledger{}, err
	}
	memory, err := read(cm.BinaryData[ledgerKey])
	if err == nil || errors.Is(err, ledger.ErrDamaged) { // a newer version's ledger stays
		delete(cm.BinaryData, ledgerKey)
		l.have, l.known = cm, true
	}
	if err != nil {
		return ledger.Ledger{}, fmt.Errorf("ConfigMap %s: %w", LedgerName, err)
	}
	return memory, nil
}

// Changed implements ledger.Store. Only the metadata is read, from etcd.
func (l *Ledgers) Changed(ctx context.Context) (bool, error) {
	version, err := versionOf(ctx, l.core, l.namespace, LedgerName)
	switch {
	case err != nil:
		return false, fmt.Errorf("ConfigMap %s: %w", LedgerName, err)
	case version == "" && l.known && l.have == nil:
		return false, nil
	case version == "":
		return false, fmt.Errorf("ConfigMap %s: it is gone", LedgerName)
	}
	return l.have == nil || version != l.have.ResourceVersion, nil
}

// read decodes a compressed ledger.
func read(data []byte) (ledger.Ledger, error) {
	if len(data) == 0 {
		return ledger.Ledger{}, nil // the manifests create an empty one
	}
	plain, err := unzip(data, maxPlain+1)
	switch {
	case err != nil:
		return ledger.Ledger{}, fmt.Errorf("%w: %w", ledger.ErrDamaged, err)
	case len(plain) > maxPlain:
		return ledger.Ledger{}, fmt.Errorf("%w: it has more than %d bytes", ledger.ErrDamaged, maxPlain)
	}
	return ledger.Decode(plain)
}

// get returns the ConfigMap of the ledger, or nil if it does not exist.
func (l *Ledgers) get(ctx context.Context) (cm *corev1.ConfigMap, err error) {
	err = kube.Patiently(ctx, func(ctx context.Context) (err error) {
		cm, err = l.maps.Get(ctx, LedgerName, metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // it does not exist
	}
	return cm, err
}

// Save implements ledger.Store. It replaces the ConfigMap if it is still as loaded, or creates it if
// there was none. It keeps data that other clients put there under their own keys. It may be called
// again without a Load.
func (l *Ledgers) Save(ctx context.Context, next ledger.Ledger) error {
	plain := next.Encode()
	if len(plain) > maxPlain {
		return fmt.Errorf("ConfigMap %s of the ledger would have %d bytes, it has room for %d", LedgerName, len(plain), maxPlain)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: LedgerName}}
	if l.have != nil {
		cm = l.have.DeepCopy()
	}
	if cm.BinaryData == nil {
		cm.BinaryData = make(map[string][]byte)
	}
	cm.BinaryData[ledgerKey] = zip(plain, gzip.BestSpeed)
	saved, err := l.put(ctx, cm)
	if err != nil {
		return err
	}
	delete(saved.BinaryData, ledgerKey)
	l.have = saved
	return nil
}

// put writes the ConfigMap. The error wraps ErrAgain if another client has written it since.
func (l *Ledgers) put(ctx context.Context, cm *corev1.ConfigMap) (saved *corev1.ConfigMap, err error) {
	if l.have != nil {
		saved, err = l.maps.Update(ctx, cm, metav1.UpdateOptions{})
	} else {
		saved, err = l.maps.Create(ctx, cm, metav1.CreateOptions{})
		err = inNamespace(err, l.namespace)
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), l.have != nil && apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: %w", ipam.ErrAgain, err)
	case err != nil:
		return nil, kube.Transient(err)
	}
	return saved, nil
}
