package cluster

import (
	"errors"
	"sync"
)

// Each calls do for all values, with at most limit calls at a time, and returns when the last is
// done. It joins the errors in the order of the values. A limit below one means one.
func Each[T any](limit int, all []T, do func(i int, one T) error) error {
	errs := make([]error, len(all))
	slots := make(chan struct{}, max(limit, 1))
	var wg sync.WaitGroup
	for i, one := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i, one)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
