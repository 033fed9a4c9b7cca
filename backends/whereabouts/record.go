package whereabouts

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// checkRecords reads the records of one pool. It returns what could be read, by index, and an
// error for each record that Record cannot have returned: someone may have edited the journal.
func checkRecords[T any](pool string, rs []ipam.Record, read func(ipam.Record) (T, error)) (map[int]T, []error) {
	good, errs := make(map[int]T, len(rs)), make([]error, len(rs))
	seen := make(map[string]bool, len(rs))
	namespace, name := splitPool(pool)
	for i, r := range rs {
		one, err := read(r)
		switch {
		case namespace == "" || name == "" || strings.Contains(name, "/"):
			err = fmt.Errorf("%q is not namespace/name", pool)
		case seen[r.Key]:
			err = errors.New("the journal has two records of it")
		}
		if err != nil {
			errs[i] = fmt.Errorf("the record of %s in %s: %w", r.Key, r.Pool, err)
			continue
		}
		seen[r.Key], good[i] = true, one
	}
	return good, errs
}

// sameJSON reports whether two documents have the same values. A journal may format them
// differently than the store.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return kube.Decode(a, &x) == nil && kube.Decode(b, &y) == nil && reflect.DeepEqual(x, y)
}

// takenBy returns the error for a place that another owner has.
func takenBy(podRef string, stored json.RawMessage) error {
	if podRef == "" {
		podRef = "an entry that names no pod: " + string(stored)
	}
	return fmt.Errorf("%w by %s", ipam.ErrTaken, podRef)
}
