package hostlocal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/backends/hostlocal"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The backend passes the suite over leases of the real plugin, whose DEL it calls (promises 1, 2, 4
// and 6). In backends/hostlocal, it passes by removing files.
func TestConformance(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) backendtest.Store {
		s := &store{newNode(t)}
		for _, pool := range suitePools {
			at := fmt.Sprintf("10.%d.0.", pool[0])
			s.spans[pool] = []span{{at + "0/24", at + "2", at + "33"}} // 32 addresses
		}
		return s
	})
}

// suitePools are the networks of the suite.
var suitePools = []string{"a", "b"}

// A store is a node with only the runtime's networks. It is a backendtest.NodeStore.
type store struct{ *node }

// ByRuntime implements backendtest.NodeStore.
func (*store) ByRuntime() {}

// Backend implements backendtest.Store.
func (s *store) Backend() ipam.Backend {
	settings := s.settings()
	settings.Networks = suitePools
	return hostlocal.New(settings)
}

// Reserve implements backendtest.Store.
func (s *store) Reserve(pool string, owner ipam.Owner) (ipam.Allocation, error) {
	ips, err := s.add(s.Context(), pool, owner)
	if err != nil {
		return ipam.Allocation{}, err
	}
	a := ipam.Allocation{Pool: s.path(dataDir, pool), Key: ips[0].String(), IP: ips[0], Owner: owner, ByRuntime: true}
	a.Owner.Node = ""
	return a, s.age(pool, owner, dead, ips...)
}

// Free implements backendtest.Store.
func (s *store) Free(pool string, owner ipam.Owner) error {
	return s.del(s.Context(), pool, owner)
}

// Snapshot implements backendtest.Store. It omits libcni's cache, from which a DEL removes entries
// too.
func (s *store) Snapshot() (map[string]string, error) { return contentOf(s.path(dataDir)) }

// Spoil implements backendtest.Spoiler.
func (s *store) Spoil(pool string) (ipam.Allocation, error) {
	err := os.WriteFile(s.lease(pool, "10.9.9.9"), []byte("no container ID"), 0o600)
	return ipam.Allocation{Pool: s.path(dataDir, pool), Key: "10.9.9.9"}, err
}

// contentOf returns what is in a folder: the kind, permissions, time and content of each file, by
// path.
func contentOf(folder string) (map[string]string, error) {
	found := make(map[string]string)
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != folder {
			return nil // it was removed meanwhile
		}
		if err != nil || e.IsDir() {
			return err
		}
		text, err := describe(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		found[path] = text
		return err
	})
	return found, err
}

// describe returns everything about a file.
func describe(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	var content []byte
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(path)
		return "link to " + to, err
	case info.Mode().IsRegular():
		if content, err = os.ReadFile(path); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%v %v %q", info.Mode(), info.ModTime().UnixNano(), content), nil
}
