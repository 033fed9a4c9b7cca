package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A change is an entry of the changelog.
type change struct {
	Kind        string `json:"kind"`
	Description string `json:"description"`
}

// changesOf returns the changes that the changelog has of a version, in its order.
func changesOf(sources, version string) ([]change, error) {
	path := filepath.Join(sources, "docs", "changes", version+".md")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []change
	kind := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if k, ok := strings.CutPrefix(line, "### "); ok {
			kind = strings.ToLower(k)
		} else if body, ok := strings.CutPrefix(line, "- "); ok {
			all = append(all, change{kind, body})
		} else if more, ok := strings.CutPrefix(line, "  "); ok && len(all) > 0 {
			all[len(all)-1].Description += " " + strings.TrimSpace(more)
		}
	}
	if len(all) == 0 || all[0].Kind == "" {
		return nil, fmt.Errorf("%s has no change below a heading ###", path)
	}
	return all, nil
}
