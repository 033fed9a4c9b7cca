package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// The ledger is stored in the ConfigMap LedgerName, by one conditional write. If largeKey of
// that ConfigMap is "true", a ledger that does not fit is cut into parts. Each part is in its
// own ConfigMap, which is never changed, and partsKey has their names in order.
const (
	LedgerName     = "ip-reaper-ledger"
	LedgerPartName = LedgerName + "-part" // plus a random text and a number
	LedgerLabel    = "ip-reaper/ledger"   // "part"

	ledgerKey = "ledger.gz"
	partsKey  = "parts"
	largeKey  = "large"
)

// An API server accepts ConfigMaps of 1 MiB. gzip makes incompressible data a little longer,
// and other clients may have data there. The admission policies let an account create parts of
// half of that.
const (
	maxHead  = 1021 << 10 // bytes of the ledger in the first ConfigMap; a part has at most half
	maxPlain = 1020 << 10 // bytes of a ledger that fits into it, before compression
	maxParts = 16
)

// Ledgers keeps the ledger in ConfigMaps of one namespace. It implements ledger.Store. It is
// not safe for concurrent use.
type Ledgers struct {
	maps      corev1client.ConfigMapInterface
	namespace string
	maxHead   int // see the constant
	maxPlain  int
	head      *corev1.ConfigMap // LedgerName as loaded or written, without the ledger; nil for none
}

// NewLedgers returns the ledger of a namespace.
func NewLedgers(core corev1client.ConfigMapsGetter, namespace string) *Ledgers {
	return &Ledgers{maps: core.ConfigMaps(namespace), namespace: namespace, maxHead: maxHead, maxPlain: maxPlain}
}

// Capacity implements ledger.Store.
func (l *Ledgers) Capacity() int {
	if l.isLarge() {
		return maxParts * l.maxPlain / 2
	}
	return l.maxPlain
}

// isLarge reports whether the ledger may have parts, or has some.
func (l *Ledgers) isLarge() bool {
	return l.head != nil && (l.head.Data[largeKey] == "true" || l.head.Data[partsKey] != "")
}

// Load implements ledger.Store. If a part is missing, another client may have replaced it since
// the first ConfigMap was read. Load then rereads that ConfigMap, until it is unchanged.
func (l *Ledgers) Load(ctx context.Context) (ledger.Ledger, error) {
	l.head = nil
	for before := ""; ; {
		head, err := l.get(ctx, LedgerName)
		if err != nil {
			return ledger.Ledger{}, err
		}
		if head == nil {
			return ledger.Ledger{}, nil
		}
		memory, err := l.read(ctx, head)
		var missing missingError
		switch {
		case errors.As(err, &missing) && head.ResourceVersion != before:
			before = head.ResourceVersion
			continue
		case err == nil || errors.Is(err, ledger.ErrDamaged):
			delete(head.BinaryData, ledgerKey)
			l.head = head
		}
		if err != nil {
			return ledger.Ledger{}, fmt.Errorf("ConfigMap %s: %w", LedgerName, err)
		}
		return memory, nil
	}
}

// A missingError names a part that does not exist.
type missingError struct{ name string }

func (e missingError) Error() string { return e.name + " is missing" }

// read decodes the ledger in the first ConfigMap and the parts that it names.
func (l *Ledgers) read(ctx context.Context, head *corev1.ConfigMap) (ledger.Ledger, error) {
	names := strings.Fields(head.Data[partsKey])
	if len(names) > maxParts {
		return ledger.Ledger{}, fmt.Errorf("%w (it has %d parts, this program reads %d)", ledger.ErrNewer, len(names), maxParts)
	}
	data := head.BinaryData[ledgerKey]
	for _, name := range names {
		part, err := l.get(ctx, name)
		if err != nil {
			return ledger.Ledger{}, err
		}
		if part == nil {
			return ledger.Ledger{}, fmt.Errorf("%w: %w", ledger.ErrDamaged, missingError{name})
		}
		data = append(data, part.BinaryData[ledgerKey]...)
	}
	if len(data) == 0 {
		return ledger.Ledger{}, nil // the manifests create an empty one
	}
	plain, err := unzip(data, int64(maxParts*l.maxPlain/2+1))
	switch {
	case err != nil:
		return ledger.Ledger{}, fmt.Errorf("%w: %w", ledger.ErrDamaged, err)
	case len(plain) > maxParts*l.maxPlain/2:
		return ledger.Ledger{}, fmt.Errorf("%w: it has more than %d bytes", ledger.ErrDamaged, maxParts*l.maxPlain/2)
	}
	return ledger.Decode(plain)
}

// get returns the ConfigMap with a name, or nil if it does not exist.
func (l *Ledgers) get(ctx context.Context, name string) (cm *corev1.ConfigMap, err error) {
	err = kube.Patiently(ctx, func(ctx context.Context) (err error) {
		cm, err = l.maps.Get(ctx, name, metav1.GetOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // it does not exist
	}
	return cm, err
}

// merged returns a copy of a map with a value set. It keeps the other keys, which another
// client may have put there.
func merged[V any](have map[string]V, key string, value V) map[string]V {
	all := maps.Clone(have)
	if all == nil {
		all = make(map[string]V)
	}
	all[key] = value
	return all
}
