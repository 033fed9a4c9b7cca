package hostlocal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// maxConf is the largest network configuration that is read, in bytes.
const maxConf = 1 << 20

// places say which folders may have leases, and whose they are.
type places struct {
	dataDirs []string // without repeats
	own      map[string]network
	foreign  map[string]string // network folders of other programs, with the program
	named    map[string]bool   // the networks that the policy names

	// loaded is the configuration that the runtime loads, for people; empty if there is
	// none, and then why says so.
	loaded, why string

	// wanted are the data folders that the loaded configuration names, with their networks, but
	// for those that are idle.
	wanted map[string]string

	broken []*ipam.ObjectError // configurations that could not be decoded
}

// readPlaces reads the network configurations. What it cannot read or decode makes nothing
// the runtime's.
func readPlaces(ctx context.Context, s Settings) (places, error) {
	p := places{own: make(map[string]network), foreign: make(map[string]string), named: make(map[string]bool), wanted: make(map[string]string)}
	for _, name := range s.Networks {
		p.named[name] = true
	}
	for _, dir := range s.DataDirs {
		p.addDataDir(resolved(dir))
	}
	defaults := slices.Clone(p.dataDirs)
	confs, err := p.readConfs(ctx, s.ConfDir)
	if err != nil {
		return places{}, err
	}
	byName := func(nameOrFile string) (conf, bool) {
		i := slices.IndexFunc(confs, func(c conf) bool { return c.Name == nameOrFile || c.file == path.Base(nameOrFile) })
		if i < 0 {
			return conf{}, false
		}
		return confs[i], true
	}
	for _, c := range confs {
		stranger := c.stranger()
		for _, n := range c.networks(byName) {
			for _, dir := range foldersOf(n, defaults) {
				p.addDataDir(dir)
				folder := dir + "/" + n.name
				switch {
				case stranger != "":
					p.foreign[folder] = stranger
				case c.file == p.loaded:
					if n.dataDir != "" && !n.idle {
						p.wanted[dir] = n.name
					}
					p.own[folder] = n.merged(p.own[folder])
				}
			}
		}
	}
	return p, nil
}

// merged returns the network with what another plugin of its list says of it.
func (n network) merged(other network) network {
	n.ranges = append(slices.Clone(other.ranges), n.ranges...)
	return n
}

// readConfs reads the configurations in the order of their files. The first is the one that
// containerd and CRI-O load.
func (p *places) readConfs(ctx context.Context, dir string) ([]conf, error) {
	var files []string
	d, err := openFolder(dir)
	if err == nil {
		defer d.close()
		err = d.each(ctx, func(name string, mode fs.FileMode) error {
			if isConf(name) && !mode.IsDir() {
				files = append(files, name)
			}
			return nil
		})
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read the network configurations: %w", err)
	}
	if len(files) == 0 {
		p.why = dir + " has no network configuration"
		return nil, nil
	}
	slices.Sort(files)
	p.loaded = files[0]
	var confs []conf
	for _, name := range files {
		c, err := readConfFile(d, name)
		if err != nil {
			p.broken = append(p.broken, &ipam.ObjectError{Object: "network configuration " + dir + "/" + name, Err: err})
			if name == p.loaded {
				p.loaded, p.why = "", "network configuration "+dir+"/"+name+" could not be decoded"
			}
			continue
		}
		if stranger := c.stranger(); stranger != "" && name == p.loaded {
			p.loaded, p.why = "", "the first network configuration, "+dir+"/"+name+", is of "+stranger
		}
		confs = append(confs, c)
	}
	return confs, nil
}

// readConfFile reads one configuration. It may be a symbolic link, which a runtime follows.
func readConfFile(d *folder, name string) (conf, error) {
	f, err := d.readLinked(name, maxConf)
	switch {
	case err != nil:
		return conf{}, err
	case !f.mode.IsRegular():
		return conf{}, fmt.Errorf("it is not a regular file, but %s", kindOf(f.mode))
	case f.size > maxConf:
		return conf{}, fmt.Errorf("it has %d bytes, and at most %d are read", f.size, maxConf)
	}
	return readConf(name, f.content)
}

// foldersOf returns the data folders in which a network may be.
func foldersOf(n network, defaults []string) []string {
	switch {
	case !networkName.MatchString(n.name):
		return nil
	case n.dataDir == "":
		return defaults
	case !strings.HasPrefix(n.dataDir, "/"):
		return nil // relative to the runtime's own folder
	}
	return []string{resolved(n.dataDir)}
}

// resolved returns the path without symbolic links, so that a folder has one name:
// /var/run is /run on most nodes. A folder that does not exist keeps its name.
func resolved(dir string) string {
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		return target
	}
	return path.Clean(dir)
}

// addDataDir adds a data folder once.
func (p *places) addDataDir(dir string) {
	if !slices.Contains(p.dataDirs, dir) {
		p.dataDirs = append(p.dataDirs, dir)
	}
}

// protection says why the addresses of a network folder are held; empty if they are the
// runtime's.
func (p *places) protection(folder string) string {
	if p.named[path.Base(folder)] {
		return ""
	}
	name := path.Base(folder)
	release := fmt.Sprintf("; if only pods use it, add %s to backends.hostlocal.networks", name)
	if program := p.foreign[folder]; program != "" {
		return fmt.Sprintf("network %s is of %s", name, program) + release
	}
	if strings.HasPrefix(name, "podman") {
		return fmt.Sprintf("network %s is of podman", name) + release
	}
	if _, ok := p.own[folder]; ok {
		return ""
	}
	return fmt.Sprintf("network %s is not the container runtime's: %s", name,
		cmp.Or(p.why, p.loaded+" is the configuration that it loads, and does not have it")) + release
}

// has reports whether the path is that of a network folder in one of the data folders.
func (p *places) has(folder string) bool {
	dir, name := path.Split(folder)
	return networkName.MatchString(name) && slices.Contains(p.dataDirs, strings.TrimSuffix(dir, "/"))
}
