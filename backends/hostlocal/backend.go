// Package hostlocal is the backend over the addresses that the IPAM plugin host-local keeps on
// a node: a folder for each network, with a file for each address that contains the container's
// ID.
package hostlocal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A Backend is the host-local store of this node. It is safe for concurrent use.
type Backend struct {
	settings Settings // with defaults

	// sizes has how many allocations each group known to libcni has, as last listed.
	sizes atomic.Pointer[map[string]int]

	flannelDir string // has flannel's file. Tests replace it

	// fileSystem returns the magic number of the file system that a folder is on. Tests replace it.
	fileSystem func(*folder) (uint32, error)

	room  *semaphore.Weighted             // each network being released takes one
	turns [delsAtOnce]*semaphore.Weighted // see take
	hung  sync.Map                        // the paths of the plugins that did not end in time
}

// New returns the backend. It reads nothing yet.
func New(s Settings) *Backend {
	b := &Backend{
		settings:   s.withDefaults(),
		flannelDir: "/run/flannel",
		fileSystem: (*folder).fileSystem,
		room:       semaphore.NewWeighted(delsAtOnce),
	}
	b.sizes.Store(new(map[string]int))
	for i := range b.turns {
		b.turns[i] = semaphore.NewWeighted(1)
	}
	return b
}

// Name implements ipam.Backend.
func (*Backend) Name() string { return Name }

// List implements ipam.Backend. A pool is the folder of a network, and its name is the
// path of the folder.
func (b *Backend) List(ctx context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		p, err := readNetworkDirs(b.settings)
		if err != nil {
			yield(ipam.Pool{}, err)
			return
		}
		for _, broken := range p.broken {
			if !yield(ipam.Pool{}, broken) {
				return
			}
		}
		l := listing{
			Backend:     b,
			networkDirs: p,
			sizes:       make(map[string]int),
			leased:      make(map[string]bool),
			damaged:     make(map[string]bool),
			unlisted:    make(map[string]bool),
		}
		for _, dir := range p.dataDirs {
			for pool, err := range l.dataDir(ctx, dir) {
				var ofPool *ipam.PoolError
				if !yield(pool, err) || err != nil && !errors.As(err, &ofPool) {
					return
				}
			}
		}
		if err := l.noteOthers(ctx); err != nil {
			yield(ipam.Pool{}, err)
			return
		}
		b.sizes.Store(&l.sizes)
		beside := l.beside()
		if !l.found {
			lacks := strings.Join(p.dataDirs, ", ")
			for _, err := range beside {
				lacks += "; " + err.Error()
			}
			lacks = "no data folder of host-local exists: " + lacks
			if len(l.unlisted) > 0 {
				yield(ipam.Pool{}, ipam.Worded(lacks, ipam.ErrNotInstalled))
				return
			}
			yield(ipam.Pool{}, fmt.Errorf("%w: %s", ipam.ErrNotInstalled, lacks))
			return
		}
		for _, err := range beside {
			if !yield(ipam.Pool{}, err) {
				return
			}
		}
	}
}

// A listing is the state of one call of List.
type listing struct {
	*Backend
	networkDirs
	found bool           // a data folder exists
	sizes map[string]int // see Backend

	leased map[string]bool // the sandboxes of leases

	// By libcni's cache: its entries that cannot be decoded, and the folders of networks that are in no data folder.
	damaged, unlisted map[string]bool
}

// dataDir yields the pools of one data folder. An error other than an *ipam.PoolError ends the
// listing. A missing folder is an error if the loaded configuration names it: in a pod, it
// might not be mounted.
func (l *listing) dataDir(ctx context.Context, dir string) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		d, err := openFolder(dir)
		switch gone := errors.Is(err, fs.ErrNotExist); {
		case gone && l.wanted[dir]:
			l.found = true
			yield(ipam.Pool{}, &ipam.PoolError{Pool: dir, Network: dir, Err: fmt.Errorf(
				"the data folder %s, which the configuration %s names, does not exist here: if this is a pod, mount it", dir, l.loaded)})
			return
		case gone:
			return
		case err != nil:
			yield(ipam.Pool{}, fmt.Errorf("read the data folder: %w", err))
			return
		}
		defer d.close()
		l.found = true
		var names []string
		err = d.each(ctx, func(name string) error {
			if !networkName.MatchString(name) {
				return nil
			}
			info, err := d.Lstat(name)
			if err != nil || info.IsDir() || info.Mode()&fs.ModeSymlink != 0 {
				names = append(names, name) // opening it says what is wrong
			}
			return nil
		})
		if err != nil {
			yield(ipam.Pool{}, err)
			return
		}
		slices.Sort(names)
		for _, name := range names {
			pool, err := l.pool(ctx, d, name)
			switch {
			case ctx.Err() != nil:
				err = ctx.Err()
			case errors.Is(err, fs.ErrNotExist) || err == nil && pool.Name == "":
				continue
			case err != nil:
				path := d.path + "/" + name
				err = &ipam.PoolError{Pool: path, Err: err, Network: path}
			}
			if !yield(pool, err) {
				return
			}
		}
	}
}

// pool reads the folder of one network. The pool is the zero Pool if the network is not the
// runtime's and the folder has no lease: it may belong to another program altogether.
func (l *listing) pool(ctx context.Context, data *folder, network string) (ipam.Pool, error) {
	d, err := data.open(network)
	if err != nil {
		return ipam.Pool{}, err
	}
	defer d.close()
	shared, err := l.shared(d)
	if err != nil {
		return ipam.Pool{}, err
	}
	stranger := l.protection(d.path)
	pool := ipam.Pool{
		Name:      d.path,
		Network:   d.path,
		Protected: cmp.Or(shared, stranger),
	}
	if first, usable, ok := l.own[d.path].size(); ok {
		pool.Range = first
		pool.Capacity = usable.Within(first).Count()
	}
	leases := false
	err = d.each(ctx, func(name string) error {
		if isOwn(name) {
			return nil
		}
		f, err := d.read(name, maxLease)
		if errors.Is(err, errReplaced) {
			f, err = d.read(name, maxLease) // DEL and ADD of the same address
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // DEL released it meanwhile
		}
		a := f.allocation(d.path)
		if err != nil {
			a = ipam.Allocation{Key: name, IP: addressOf(name), ByRuntime: true, Unreadable: err.Error()}
		}
		leases = leases || a.IP.IsValid()
		a.Protected = pool.Protected
		pool.Allocations = append(pool.Allocations, a)
		return nil
	})
	if err != nil || !leases && stranger != "" {
		return ipam.Pool{}, err
	}
	if err := l.addCache(ctx, pool.Allocations); err != nil {
		return ipam.Pool{}, err
	}
	pool.Allocations = sorted(pool.Allocations)
	return pool, nil
}

// shared says why the leases of a folder are held if other nodes may write them too. It is empty
// if the folder is on a file system that one node has for itself: then the sandboxes of this node
// decide.
func (b *Backend) shared(d *folder) (string, error) {
	magic, err := b.fileSystem(d)
	if err != nil {
		return "", err
	}
	name := notLocal(magic)
	if name == "" {
		return "", nil
	}
	return fmt.Sprintf("its folder is on %s, which is not known to be this node's alone: another node may have written the lease", name), nil
}

// addCache adds what libcni's cache knows to the allocations. They were read earlier.
func (l *listing) addCache(ctx context.Context, all []ipam.Allocation) error {
	return l.withCache(ctx, func(entries map[string][]cacheFile) {
		for i, a := range all {
			l.leased[a.Owner.Sandbox] = true
			if l.explain(entries[a.Owner.Sandbox], &all[i]) {
				l.sizes[a.Group]++
			}
		}
	})
}

// noteOthers notes what libcni's cache has of sandboxes without a lease.
func (l *listing) noteOthers(ctx context.Context) error {
	return l.withCache(ctx, func(entries map[string][]cacheFile) {
		for id, files := range entries {
			if !l.leased[id] {
				l.explain(files, &ipam.Allocation{Owner: ipam.Owner{Sandbox: id}})
			}
		}
	})
}

// withCache calls a function with the entries of libcni's cache, by sandbox.
func (l *listing) withCache(ctx context.Context, use func(entries map[string][]cacheFile)) error {
	known, err := openCache(l.settings.CacheDir)
	if err != nil {
		return err
	}
	defer known.close()
	entries, err := known.bySandbox(ctx)
	if err != nil {
		return err
	}
	use(entries)
	return nil
}

// How many damaged entries and folders a warning names, and how many folders are noted: tenants write them.
const (
	maxDamaged  = 20
	maxQuoted   = 5
	maxUnlisted = 100
)

// note notes what an entry says that is no allocation.
func (l *listing) note(at cacheFile, e cached) {
	// A younger one may just be written, a longer one was not read, and the name of another is none that a shell
	// takes as it is.
	old := time.Since(e.mtime) > time.Minute && len(e.content) < maxCached
	if e.Kind == "" && old && networkName.MatchString(at.name) && !at.decodes() {
		l.damaged[at.path()] = true
	}
	for _, pool := range e.pools(nil) {
		if !l.has(pool.Name) && len(l.unlisted) < maxUnlisted {
			l.unlisted[pool.Name] = true
		}
	}
}

// beside says what libcni's cache has beside leases. A folder that is not listed is not opened: tenants write
// attachments, and with them any path.
func (l *listing) beside() (errs []error) {
	if files := slices.Sorted(maps.Keys(l.damaged)); len(files) > 0 {
		errs = append(errs, &ipam.ObjectError{Object: "libcni's cache", Err: fmt.Errorf("%d of its entries cannot be decoded, and may hold leases. "+
			"Stop those of their sandboxes that crictl pods lists: the kubelet makes new ones for their pods. Of a sandbox that the runtime has lost, "+
			"the entry may be all that is left, so remove one only once nothing of its pod runs: rm -i %s",
			len(files), strings.Join(files[:min(len(files), maxDamaged)], " "))})
	}
	folders := slices.Sorted(maps.Keys(l.unlisted))
	if len(folders) == 0 {
		return errs
	}
	var names, quoted []string
	dirs := slices.Clone(l.settings.DataDirs)
	for _, folder := range folders {
		names = append(names, path.Base(folder))
		if len(quoted) < maxQuoted {
			quoted = append(quoted, strconv.Quote(folder))
			dirs = append(dirs, path.Dir(folder))
		}
	}
	line, _ := json.Marshal(slices.Compact(dirs)) // strings have no error
	return append(errs, &ipam.ObjectError{Object: "not listed", NotListed: names, Err: fmt.Errorf(
		"%s, where by libcni's cache host-local keeps leases. Whoever writes a network attachment can choose such a folder. "+
			"If it is right, mount it where this is a pod, and write into the policy, below backends.hostlocal: dataDirs: %s", strings.Join(quoted, ", "), line)})
}

// sorted sorts the allocations by address. A folder that changes while it is read may yield a
// name twice: the later reading counts.
func sorted(all []ipam.Allocation) []ipam.Allocation {
	slices.SortStableFunc(all, func(a, b ipam.Allocation) int {
		return cmp.Or(a.IP.Compare(b.IP), strings.Compare(a.Key, b.Key))
	})
	kept := all[:0]
	for i, a := range all {
		if i+1 < len(all) && all[i+1].Key == a.Key {
			continue
		}
		kept = append(kept, a)
	}
	return kept
}

// Survey implements ipam.Surveyor. A network with IPv4 and IPv6 is as full as its IPv4 ranges. Each folder
// is one, also if its size is unknown.
func (b *Backend) Survey(_ context.Context, pools []ipam.Pool) ([]ipam.Network, error) {
	p, err := readNetworkDirs(b.settings)
	if err != nil {
		return nil, err
	}
	var all []ipam.Network
	for _, pool := range pools {
		n := p.own[pool.Name]
		first, usable, ok := n.size()
		if !ok && (n.flannel || len(n.ranges) > 0) { // canal has a word in the place of a range
			first, usable, ok = network{ranges: b.flannelRanges(pool)}.size()
		}
		all = append(all, ipam.Network{Name: pool.Name, Range: first, Known: ok, Usable: usable, Pools: []string{pool.Name}})
	}
	return all, nil
}
