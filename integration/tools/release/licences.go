package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	classifier "github.com/google/licenseclassifier/v2"
)

// allowed are the licences that the program may link. They ask that their text and a notice
// are handed on, and MPL-2.0 that it is said where the sources are.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}

// beside are licences of files that lie beside linked packages, and are not linked.
var beside = map[string]string{
	"std src/crypto/internal/boring/LICENSE": "of objects for GOEXPERIMENT=boringcrypto alone, which a release clears",
}

var (
	isLicence = regexp.MustCompile(`(?i)^((un)?licen[cs]e|copying)([-._].*)?$`)
	isNotice  = regexp.MustCompile(`(?i)^(notice|patents|copyright)([-._].*)?$`)
)

// A text is a file of a module that has to be handed on.
type text struct {
	name    string // below the folder of the module
	content string
	ids     []string // of SPDX; none where it is a notice
}

// texts returns the licences and notices of a module. Those of a folder are for the
// packages in it and below it, so that of a folder without linked packages are left out.
// It fails where a licence is missing, unknown, or not allowed.
func (m *module) texts(known *classifier.Classifier) ([]text, error) {
	folders := map[string]bool{m.dir: true}
	for _, folder := range m.packages {
		for ; len(folder) > len(m.dir); folder = filepath.Dir(folder) {
			folders[folder] = true
		}
	}
	var found []text
	licensed := false
	for folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			licence := isLicence.MatchString(entry.Name())
			if entry.IsDir() || filepath.Ext(entry.Name()) == ".go" || !licence && !isNotice.MatchString(entry.Name()) {
				continue
			}
			name, err := filepath.Rel(m.dir, filepath.Join(folder, entry.Name()))
			if err != nil {
				return nil, err
			}
			name = filepath.ToSlash(name)
			if _, is := beside[m.path+" "+name]; is {
				continue
			}
			t, err := m.text(name, licence, known)
			if err != nil {
				return nil, err
			}
			licensed = licensed || licence && folder == m.dir
			found = append(found, t)
		}
	}
	if !licensed {
		return nil, fmt.Errorf("%s %s has no licence", m.path, m.version)
	}
	slices.SortFunc(found, func(a, b text) int { return strings.Compare(a.name, b.name) })
	return found, nil
}

// text reads one file.
func (m *module) text(name string, licence bool, known *classifier.Classifier) (text, error) {
	content, err := os.ReadFile(filepath.Join(m.dir, name))
	if err != nil {
		return text{}, err
	}
	t := text{name: name, content: string(content)}
	if !licence {
		return t, nil
	}
	for _, match := range known.Match(content).Matches {
		if match.MatchType == "License" && !slices.Contains(t.ids, match.Name) {
			t.ids = append(t.ids, match.Name)
		}
	}
	slices.Sort(t.ids)
	if len(t.ids) == 0 {
		return text{}, fmt.Errorf("%s %s: %s is no known licence", m.path, m.version, t.name)
	}
	for _, id := range t.ids {
		if !slices.Contains(allowed, id) {
			return text{}, fmt.Errorf("%s %s: %s is %s, which is not allowed: %s", m.path, m.version, t.name, id, strings.Join(allowed, ", "))
		}
	}
	return t, nil
}
