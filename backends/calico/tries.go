package calico

import (
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// maxConflicts is how often one call tries a block that other writers keep changing. The
// warrants usually expire first.
const maxConflicts = 20

// handlesAtOnce is how many handles of one block are read or written at a time.
const handlesAtOnce = 8

// untilWritten repeats an attempt to write a block until it meets no conflict, and returns
// its n answers. An attempt reports false if another writer was first: then it has decided
// nothing.
func untilWritten(n int, attempt func() (errs []error, ok bool)) []error {
	for range maxConflicts {
		if errs, ok := attempt(); ok {
			return errs
		}
	}
	return slices.Repeat([]error{fmt.Errorf("%w: other writers keep changing the block", ipam.ErrAgain)}, n)
}

// each calls do for every number below n, a few at a time.
func each(n int, do func(i int)) {
	var g errgroup.Group
	g.SetLimit(handlesAtOnce)
	for i := range n {
		g.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = g.Wait() // do returns no error
}
