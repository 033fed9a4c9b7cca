package whereabouts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	"github.com/sethvargo/go-retry"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// restoreBackoff returns the waits between tries of a restore: ten, 3 s in all. An
// ADD of the plugin holds a pool for a tenth of a second.
func restoreBackoff() retry.Backoff {
	backoff := retry.WithCappedDuration(500*time.Millisecond, retry.NewExponential(20*time.Millisecond))
	return retry.WithMaxRetries(10, retry.WithJitterPercent(20, backoff))
}

// retryable marks an error that may pass, so that the restore is tried again.
func retryable(err error) error {
	if err = kube.Transient(err); errors.Is(err, ipam.ErrAgain) {
		return retry.RetryableError(err)
	}
	return err
}

// checkRecords checks the records of one pool. It returns the good ones by index,
// and an error for each record that Record cannot have returned for this pool.
func checkRecords(backend, pool string, rs []ipam.Record, check func(ipam.Record) error) (map[int]ipam.Record, []error) {
	good, errs := make(map[int]ipam.Record, len(rs)), make([]error, len(rs))
	seen := make(map[string]bool, len(rs))
	namespace, name := splitPool(pool)
	for i, r := range rs {
		var err error
		switch {
		case namespace == "" || name == "" || strings.Contains(name, "/"):
			err = fmt.Errorf("%q is not namespace/name", pool)
		case r.Backend != backend || r.Pool != pool:
			err = fmt.Errorf("the record is of %s %s, not of %s %s", r.Backend, r.Pool, backend, pool)
		case seen[r.Key]:
			err = errors.New("the journal has a record of it twice")
		default:
			err = check(r)
		}
		if err != nil {
			errs[i] = fmt.Errorf("the record of %s in %s: %w", r.Key, r.Pool, err)
			continue
		}
		seen[r.Key], good[i] = true, r
	}
	return good, errs
}

// checkAllocation returns an error if the stored entry is not an entry of a pool.
func checkAllocation(stored json.RawMessage) error {
	var allocation *v1alpha1.IPAllocation
	if err := kube.Decode(stored, &allocation); err != nil {
		return fmt.Errorf("the stored entry: %w", err)
	}
	if allocation == nil {
		return errors.New("the stored entry is null")
	}
	return nil
}

// sameJSON reports whether two documents have the same values. A journal may write
// them in another form than the store.
func sameJSON(a, b json.RawMessage) bool {
	x, errX := decodeExactly(a)
	y, errY := decodeExactly(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// decodeExactly decodes a document and keeps its numbers as they are written.
func decodeExactly(data json.RawMessage) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return value, d.Decode(&value)
}

// takenBy returns the answer for a place that another owner has.
func takenBy(podRef string, entry json.RawMessage) error {
	if podRef == "" {
		podRef = "an entry that names no pod: " + string(entry)
	}
	return fmt.Errorf("%w by %s", ipam.ErrTaken, podRef)
}
