package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/licenseclassifier/v2/assets"
)

// writeNotices gathers the licences and notices of what programs link. The file NOTICES becomes the
// text that is handed on with the programs. The working directory has the sources of the programs. A
// module whose licence is missing, unknown or not allowed is an error.
func writeNotices(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: release notices NOTICES PROGRAM [PROGRAM ...]")
	}
	modules, err := linked(args[1:])
	if err != nil {
		return err
	}
	known, err := assets.DefaultClassifier()
	if err != nil {
		return err
	}
	page := newPage()
	var errs []error
	for _, m := range modules {
		texts, err := m.texts(known)
		errs = append(errs, err)
		page.add(m, texts)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.WriteFile(args[0], []byte(page.String()), 0o644)
}

// A page lists modules, and has each text once, since most are the same.
type page struct {
	modules, texts strings.Builder
	numbers        map[string]int // of texts, by content
}

func newPage() *page { return &page{numbers: map[string]int{}} }

// add adds a module with its licences and notices.
func (p *page) add(m *module, texts []text) {
	var ids []string
	for _, t := range texts {
		ids = append(ids, t.ids...)
	}
	slices.Sort(ids)
	fmt.Fprintf(&p.modules, "%s %s: %s\n", m.path, m.version, strings.Join(slices.Compact(ids), " AND "))
	for _, t := range texts {
		number, known := p.numbers[t.content]
		if !known {
			number = len(p.numbers) + 1
			p.numbers[t.content] = number
			fmt.Fprintf(&p.texts, "\n%s\nText %d\n\n%s\n", strings.Repeat("-", 80), number, strings.TrimRight(t.content, "\n"))
		}
		fmt.Fprintf(&p.modules, "    %s: text %d\n", t.name, number)
	}
}

func (p *page) String() string {
	return "ip-reaper contains software of others. These modules are in it; std is Go's standard\n" +
		"library. The texts of their licences and notices follow, each once. The sources of a\n" +
		"module are at https://proxy.golang.org/MODULE/@v/VERSION.zip, those of Go at\n" +
		"https://go.dev/dl/.\n\n" +
		p.modules.String() + p.texts.String()
}
