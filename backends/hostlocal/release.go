package hostlocal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// lockWait is how long a release waits for the lock of a network. It leaves a warrant enough
// time for the write.
const lockWait = ipam.Freshness / 2

// A networkRelease is the release of leases of one network.
type networkRelease struct {
	*Backend
	network string
	d       *folder
	ws      []ipam.Warrant
	as      []ipam.Allocation // those of the warrants
	errs    []error
}

// Release implements ipam.Backend. In each network, it first removes the files of the
// allocations whose attachment libcni does not know, under the plugin's lock. Then it calls the
// plugins' DEL for each other attachment, several at a time. That also cleans up what else they
// made. It removes the file if DEL did not.
func (b *Backend) Release(ctx context.Context, ws []ipam.Warrant) []error {
	takes := func(string) int64 { return 1 }
	return ipam.EachPool(ctx, ws, b.room, takes, func(pool string, ws []ipam.Warrant) []error {
		return b.releaseNetwork(ctx, pool, ws)
	})
}

// releaseNetwork releases leases of one network.
func (b *Backend) releaseNetwork(ctx context.Context, pool string, ws []ipam.Warrant) []error {
	r := &networkRelease{
		Backend: b,
		network: path.Base(pool),
		ws:      slices.Clone(ws),
		as:      make([]ipam.Allocation, len(ws)),
		errs:    make([]error, len(ws)),
	}
	files, attached, err := r.begin(pool)
	if err != nil {
		for i := range r.errs {
			r.errs[i] = cmp.Or(r.errs[i], err)
		}
		return r.errs
	}
	if r.d == nil {
		return r.errs // the folder is gone, with everything in it
	}
	defer r.d.close()
	r.remove(ctx, files)
	if !r.unlocked(ctx, attached) {
		return r.errs
	}
	var dels sync.WaitGroup
	for _, one := range attached {
		dels.Go(func() { r.detach(ctx, one) })
	}
	dels.Wait()
	return r.errs
}

// begin opens the folder, and sorts the warrants into files to remove and attachments that have
// a DEL. The folder is nil if it no longer exists. It is an error if other nodes may use it.
func (r *networkRelease) begin(pool string) (files []int, attached []detachment, err error) {
	known, err := openCache(r.settings.CacheDir)
	if err != nil {
		return nil, nil, err
	}
	defer known.close()
	var valid []int
	for i, w := range r.ws {
		a, err := w.Allocation()
		if err == nil && !addressOf(a.Key).IsValid() {
			err = fmt.Errorf("%s is not a lease of %s", a.Key, pool)
		}
		r.as[i] = a
		r.errs[i] = err
		if err == nil {
			valid = append(valid, i)
		}
	}
	for _, indices := range ipam.ByPool(valid, func(i int) string { return r.as[i].Group }) {
		if del, ok := r.delFor(known, indices); ok {
			attached = append(attached, detachment{del, indices})
			continue
		}
		files = append(files, indices...)
	}
	d, err := r.openPool(pool)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	// Something may have been mounted there since the listing.
	shared, err := r.shared(d)
	if err == nil && shared != "" {
		err = fmt.Errorf("%w: %s", ipam.ErrKept, shared)
	}
	if err != nil {
		d.close()
		return nil, nil, err
	}
	r.d = d
	return files, attached, nil
}

// delFor returns the DEL of the attachment of a group. It reports false if there is none, or if
// an allocation that DEL would release has no warrant.
func (r *networkRelease) delFor(known cache, indices []int) (func(context.Context) error, bool) {
	a := r.as[indices[0]]
	if (*r.sizes.Load())[a.Group] != len(indices) {
		return nil, false
	}
	e, err := known.find(r.network, attachment{a.Owner.Sandbox, a.Owner.Interface})
	if err != nil {
		return nil, false
	}
	return r.delOf(e)
}

// openPool opens the folder of a network in one of the data folders.
func (b *Backend) openPool(pool string) (*folder, error) {
	p, err := readNetworkDirs(b.settings)
	if err != nil {
		return nil, err
	}
	if !p.has(pool) {
		return nil, fmt.Errorf("%s is not a network in any data folder of host-local", pool)
	}
	data, err := openFolder(path.Dir(pool))
	if err != nil {
		return nil, err
	}
	defer data.close()
	return data.open(path.Base(pool))
}

// answerAll sets the errors of some warrants or records.
func answerAll(errs []error, indices []int, err error) {
	for _, i := range indices {
		errs[i] = err
	}
}

// remove removes the files of some warrants under the plugin's lock.
func (r *networkRelease) remove(ctx context.Context, indices []int) {
	if len(indices) == 0 {
		return
	}
	unlock, err := r.d.lock(ctx, lockWait)
	if err != nil {
		answerAll(r.errs, indices, err)
		return
	}
	defer unlock()
	for _, i := range indices {
		r.errs[i] = r.removeOne(ctx, r.ws[i])
	}
	// If a crash of the node undoes a removal, that is a leak again, not an error.
	_ = r.d.sync()
}

// unlocked reports whether the lock can be taken now, and otherwise sets the answers for the
// attachments. If a plugin hung holding it, each DEL would wait until delTimeout.
func (r *networkRelease) unlocked(ctx context.Context, attached []detachment) bool {
	if len(attached) == 0 {
		return true
	}
	unlock, err := r.d.lock(ctx, lockWait)
	if err == nil {
		unlock()
		return true
	}
	for _, one := range attached {
		answerAll(r.errs, one.indices, err)
	}
	return false
}

// removeOne removes the file of a warrant, if it is still as listed.
func (r *networkRelease) removeOne(ctx context.Context, w ipam.Warrant) error {
	a, err := w.Allocation()
	if err != nil {
		return err
	}
	if there, err := r.holds(a); err != nil || !there {
		return err
	}
	if _, err := w.Allocation(); err != nil { // the disk may have been slow
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", ipam.ErrAgain, err)
	}
	return r.d.remove(a.Key)
}

// holds reports whether the folder has the allocation as listed. The error wraps
// ipam.ErrChanged if the file is a different one by now.
func (r *networkRelease) holds(a ipam.Allocation) (bool, error) {
	_, err := r.d.asListed(a)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// asListed returns the file of an allocation. The error wraps fs.ErrNotExist if there is none, and
// ipam.ErrChanged if it is a different one by now.
func (d *folder) asListed(a ipam.Allocation) (file, error) {
	f, err := d.read(a.Key, maxLease)
	if err == nil && (!f.mode.IsRegular() || f.token() != a.Token) {
		err = fmt.Errorf("%w: %s", ipam.ErrChanged, f.owner())
	}
	return f, err
}

// owner says whose file it is, as text.
func (f file) owner() string {
	switch _, of, err := f.lease(); {
	case err != nil:
		return "it is no longer a lease"
	case of.id == "":
		return "it is an empty file"
	default:
		return "it now belongs to sandbox " + of.id
	}
}
