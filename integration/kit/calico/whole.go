package calico

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/go-cmp/cmp"
)

// Whole returns an error unless blocks hold these addresses and no others, and everything else is
// as Calico relies on: each block, what each handle counts, and what calicoctl finds.
func (d *Datastore) Whole(ctx context.Context, want map[string]bool) error {
	var errs []error
	held, err := d.Allocated(ctx)
	if diff := cmp.Diff(want, held); diff != "" {
		errs = append(errs, fmt.Errorf("allocated in blocks (-want +got):\n%s", diff))
	}
	found, checkErr := d.Check(ctx)
	if checkErr == nil {
		checkErr = found.clean(want)
	}
	return errors.Join(append(errs, err, checkErr, d.Counted(ctx))...)
}

// clean returns an error unless calicoctl found these addresses and nothing wrong.
func (r *CheckReport) clean(want map[string]bool) error {
	held := map[string]bool{}
	for ip := range r.Allocations {
		held[ip.String()] = true
	}
	if diff := cmp.Diff(want, held); diff != "" {
		return fmt.Errorf("allocated by calicoctl (-want +got):\n%s", diff)
	}
	return r.Clean()
}

// Clean returns an error if calicoctl found something wrong with addresses or
// handles.
func (r *CheckReport) Clean() error {
	if len(r.Leaked)+len(r.NotAllocated)+len(r.NoHandle)+len(r.LeakedHandles)+len(r.MissingHandles) > 0 {
		return fmt.Errorf("calicoctl finds problems:\n%s", r.Text)
	}
	return nil
}

// Allocated returns the addresses that blocks hold. It is an error if a block breaks an invariant.
func (d *Datastore) Allocated(ctx context.Context) (map[string]bool, error) {
	blocks, err := d.List(ctx, Block)
	if err != nil {
		return nil, err
	}
	held := map[string]bool{}
	var errs []error
	for name, o := range blocks {
		b, err := readBlock(o.Content)
		if err != nil {
			errs = append(errs, fmt.Errorf("block %s: %w", name, err))
			continue
		}
		ip := b.CIDR.Addr()
		for _, index := range b.Allocations {
			if index != nil {
				held[ip.String()] = true
			}
			ip = ip.Next()
		}
	}
	return held, errors.Join(errs...)
}

// Counted returns an error unless each handle counts what blocks hold for it, and
// there is no other handle.
func (d *Datastore) Counted(ctx context.Context) error {
	blocks, err := d.List(ctx, Block)
	if err != nil {
		return err
	}
	handles, err := d.List(ctx, Handle)
	if err != nil {
		return err
	}
	want, got := map[string]map[string]int{}, map[string]map[string]int{}
	for _, o := range blocks {
		b, err := readBlock(o.Content)
		if err != nil {
			return fmt.Errorf("block %s: %w", o.Name, err)
		}
		for _, index := range b.Allocations {
			if index == nil {
				continue
			}
			name := d.HandleName(b.Attributes[*index].Handle)
			if want[name] == nil {
				want[name] = map[string]int{}
			}
			want[name][b.CIDR.String()]++
		}
	}
	for name, o := range handles {
		var h struct{ Block map[string]int }
		if err := json.Unmarshal([]byte(o.Content), &h); err != nil {
			return fmt.Errorf("handle %s: %w", name, err)
		}
		got[name] = h.Block
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("handles (-allocated +counted):\n%s", diff)
	}
	return nil
}
