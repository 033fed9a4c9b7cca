package hostlocal

import (
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Offline returns the backend over the network folders of tars, and the documents that are
// of no use to it. A folder is that of a network if it has a file that is named by an
// address, or one of the plugin's own. Without such a folder the backend is nil.
//
// A tar does not say which networks are the runtime's: all but those of podman count.
func Offline(documents []reaper.Document, s Settings) (reaper.Backend, []reaper.Document) {
	folders := make(map[string][]file)
	for _, d := range documents {
		if name := path.Base(d.Path); d.Path != "" && (addressOf(name).IsValid() || isOwn(name)) {
			folders[folderOf(d)] = nil
		}
	}
	var rest []reaper.Document
	for _, d := range documents {
		dir := folderOf(d)
		_, isFolder := folders[path.Clean(d.Path)]
		_, inside := folders[dir]
		switch {
		case d.Path == "" || !inside && !d.Mode.IsDir():
			rest = append(rest, d)
		case inside && !isFolder && !isOwn(path.Base(d.Path)):
			folders[dir] = append(folders[dir], fileIn(d))
		}
	}
	if len(folders) == 0 {
		return nil, documents
	}
	p := places{own: make(map[string]network), named: make(map[string]bool)}
	for _, name := range s.Networks {
		p.named[name] = true
	}
	return reaper.Excerpt{Store: Name, Pools: func(yield func(reaper.Pool, error) bool) {
		for _, dir := range slices.Sorted(maps.Keys(folders)) {
			p.own[dir] = network{}
			pool := reaper.Pool{Name: dir, Network: dir, Protected: p.protection(dir)}
			for _, f := range folders[dir] {
				a := f.allocation(dir)
				a.Protected = pool.Protected
				pool.Allocations = append(pool.Allocations, a)
			}
			pool.Allocations = sorted(pool.Allocations)
			if !yield(pool, nil) {
				return
			}
		}
	}}, rest
}

// folderOf returns the folder in which an entry of a tar is: the name of the tar for an
// entry that is in none.
func folderOf(d reaper.Document) string {
	if dir := path.Dir(path.Clean(d.Path)); dir != "." {
		return dir
	}
	return d.File
}

// fileIn returns an entry of a tar as a file.
func fileIn(d reaper.Document) file {
	f := file{name: path.Base(d.Path), mode: d.Mode, size: int64(len(d.Data)), mtime: d.ModTime.UTC()}
	if d.Mode&fs.ModeType == 0 {
		f.content = d.Data[:min(len(d.Data), maxLease)]
	}
	return f
}
