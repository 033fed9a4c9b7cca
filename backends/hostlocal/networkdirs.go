package hostlocal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// networkDirs say which folders may have leases, and whose they are.
type networkDirs struct {
	dataDirs []string // without repeats
	own      map[string]network
	foreign  map[string]string // network folders of other programs, with the program
	named    []string          // the networks that the policy names

	loaded string // the file of the configuration that the runtime loads
	why    string // why there is none

	// wanted are the data folders that the loaded configuration names, except idle ones.
	wanted map[string]bool

	broken []*ipam.ObjectError // configurations that could not be decoded
}

// readNetworkDirs reads the network configurations. A configuration that it cannot read or decode
// makes nothing the runtime's.
func readNetworkDirs(s Settings) (networkDirs, error) {
	p := networkDirs{
		own:     make(map[string]network),
		foreign: make(map[string]string),
		named:   s.Networks,
		wanted:  make(map[string]bool),
	}
	for _, dir := range s.DataDirs {
		p.addDataDir(resolved(dir))
	}
	defaults := slices.Clone(p.dataDirs)
	confs, err := p.readConfs(s.ConfDir)
	if err != nil {
		return networkDirs{}, err
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
		for _, n := range c.networks("", byName, 0) {
			for _, dir := range foldersOf(n, defaults) {
				p.addDataDir(dir)
				folder := dir + "/" + n.name
				switch {
				case stranger != "":
					p.foreign[folder] = stranger
				case c.file == p.loaded:
					if n.dataDir != "" && !n.idle {
						p.wanted[dir] = true
					}
					// Another plugin of the list may have ranges there.
					n.ranges = append(slices.Clone(p.own[folder].ranges), n.ranges...)
					n.flannel = n.flannel || p.own[folder].flannel
					p.own[folder] = n
				}
			}
		}
	}
	return p, nil
}

// readConfs reads the configurations, sorted by file name. The first is the one that containerd
// and CRI-O load.
func (p *networkDirs) readConfs(dir string) ([]conf, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the network configurations: %w", err)
	}
	var confs []conf
	for _, e := range entries {
		if e.IsDir() || !slices.Contains(confEnds, path.Ext(e.Name())) {
			continue
		}
		isFirst := p.loaded == "" && p.why == ""
		name := dir + "/" + e.Name()
		c, err := readConf(name)
		if err != nil {
			p.broken = append(p.broken, &ipam.ObjectError{Object: "network configuration " + name, Err: err})
			if isFirst {
				p.why = "network configuration " + name + " could not be decoded"
			}
			continue
		}
		confs = append(confs, c)
		switch stranger := c.stranger(); {
		case !isFirst:
		case stranger != "":
			p.why = "the first network configuration, " + name + ", belongs to " + stranger
		default:
			p.loaded = c.file
		}
	}
	if p.loaded == "" && p.why == "" {
		p.why = dir + " has no network configuration"
	}
	return confs, nil
}

// foldersOf returns the data folders that may contain a network.
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
func (p *networkDirs) addDataDir(dir string) {
	if !slices.Contains(p.dataDirs, dir) {
		p.dataDirs = append(p.dataDirs, dir)
	}
}

// protection says why the addresses of a network folder are held; empty if they are the
// runtime's.
func (p *networkDirs) protection(folder string) string {
	name := path.Base(folder)
	if slices.Contains(p.named, name) {
		return ""
	}
	release := fmt.Sprintf("; only if this folder is this node's alone, and only pods use the network, add %s to backends.hostlocal.networks", name)
	program := p.foreign[folder]
	if strings.HasPrefix(name, "podman") {
		program = "podman" // even if its configuration is elsewhere
	}
	if program != "" {
		return fmt.Sprintf("network %s belongs to %s", name, program) + release
	}
	if _, ok := p.own[folder]; ok {
		return ""
	}
	return fmt.Sprintf("network %s is not the container runtime's: %s", name,
		cmp.Or(p.why, p.loaded+" is the configuration that it loads, and does not have it")) + release
}

// has reports whether the path is a network folder in one of the data folders.
func (p *networkDirs) has(folder string) bool {
	dir, name := path.Split(folder)
	return networkName.MatchString(name) && slices.Contains(p.dataDirs, strings.TrimSuffix(dir, "/"))
}
