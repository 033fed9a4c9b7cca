package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	homepage    = "https://github.com/ip-reaper/ip-reaper"
	description = "Gives back the pod addresses that nobody uses any more"
)

// An archive is the program for one platform, as it is handed out.
type archive struct {
	OS, Arch string // as Go names them
	URL      string
	SHA256   string // in hexadecimal digits
}

// archivesIn returns the archives of a release, by the names of their files. An error is
// returned if there is none.
func archivesIn(dist, version string) ([]archive, error) {
	prefix := "ip-reaper_" + version + "_"
	paths, err := filepath.Glob(filepath.Join(dist, prefix+"*_*.tar.gz"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no archive of %s", dist, version)
	}
	var all []archive
	for _, path := range paths {
		name := filepath.Base(path)
		system, arch, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(name, prefix), ".tar.gz"), "_")
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		all = append(all, archive{
			OS: system, Arch: arch,
			URL:    homepage + "/releases/download/" + version + "/" + name,
			SHA256: hex.EncodeToString(sum[:]),
		})
	}
	return all, nil
}
