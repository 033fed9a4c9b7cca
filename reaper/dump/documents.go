// Package dump reads the JSON and YAML that kubectl and etcdctl print, as documents.
package dump

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// maxYAML is how many bytes a file of YAML may have. It is held in memory.
const maxYAML = 64 << 20

// The errors for files that are not JSON, and not YAML either or too much of it.
var (
	errKeys         = errors.New("the file has etcd's keys as text: dump them with etcdctl get --prefix /calico/ -w json")
	errUTF16        = errors.New("the file is in UTF-16: write it as UTF-8, in PowerShell with | Out-File -Encoding utf8 FILE")
	errYAMLTooLarge = fmt.Errorf("the file has more than %d MiB and is no JSON: dump it with kubectl get -o json", maxYAML>>20)
)

// documents reads the objects in one file: JSON values or YAML documents. It hands out each item
// of a list as its own document.
type documents struct {
	file  string // the file's name in messages
	text  *kube.ObjectReader
	take  func(ipam.Document) error
	count int // of the documents begun so far
}

// readDocuments hands the documents of a file to take, one by one, and stops at the first error
// that take returns. A list comes after its items. JSON may be of any size, YAML has at most
// maxYAML bytes.
func readDocuments(file string, r io.Reader, take func(ipam.Document) error) error {
	const mark = "\ufeff" // PowerShell begins UTF-8 with it
	in := bufio.NewReaderSize(r, 1<<16)
	if begin, _ := in.Peek(len(mark)); string(begin) == mark {
		_, _ = in.Discard(len(mark))
	}
	d := &documents{file: file, text: kube.NewObjectReader(in), take: take}
	begin, _ := in.Peek(in.Size()) // the next read returns the error
	var err error
	switch begin := string(bytes.TrimSpace(begin)); {
	case strings.HasPrefix(begin, "{"), strings.HasPrefix(begin, "["):
		err = d.json()
	case strings.HasPrefix(begin, "/calico/"):
		err = errKeys
	case strings.HasPrefix(begin, "\xff\xfe"), strings.HasPrefix(begin, "\xfe\xff"):
		err = errUTF16
	default:
		err = d.yaml(in)
	}
	if err == nil && d.count == 0 {
		err = errors.New("the file has no objects")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// json reads JSON values. It holds one item of a list at a time.
func (d *documents) json() error {
	values := json.NewDecoder(d.text)
	for {
		token, err := values.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		d.count++
		if err == nil {
			err = d.value(values, token)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("%s is cut short: dump it again", d.place())
		case errors.As(err, new(*json.SyntaxError)), errors.Is(err, kube.ErrLargeObject):
			return fmt.Errorf("%s: byte %d: %w", d.place(), values.InputOffset(), err)
		case errors.Is(err, kube.ErrItems):
			return fmt.Errorf("%s: %w", d.place(), err)
		case err != nil:
			return err
		}
	}
}

// separator matches a line that separates YAML documents. No document contains such a line.
var separator = regexp.MustCompile(`(?m)^(?:---|\.\.\.)(?:[ \t\r]|$)`)

// yaml reads YAML documents.
func (d *documents) yaml(in io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(in, maxYAML+1))
	if err != nil {
		return err
	}
	if len(text) > maxYAML {
		return errYAMLTooLarge
	}
	from, line := 0, 1
	for _, mark := range append(separator.FindAllIndex(text, -1), []int{len(text), len(text)}) {
		document := text[from:mark[0]]
		if err := d.yamlDocument(document, line); err != nil {
			return err
		}
		line += bytes.Count(document, []byte("\n"))
		from = mark[1]
	}
	return nil
}

// yamlDocument reads one YAML document, which begins at the given line of the file. It uses
// kubectl's library, so that 64-bit integers stay exact.
func (d *documents) yamlDocument(text []byte, line int) error {
	data, err := yaml.YAMLToJSONStrict(text)
	if err == nil && string(data) == "null" {
		return nil // blank, or comments
	}
	d.count++
	if err != nil {
		return fmt.Errorf("%s, which begins in line %d: %w", d.place(), line, err)
	}
	values := json.NewDecoder(bytes.NewReader(data))
	token, err := values.Token()
	if err != nil {
		return err
	}
	return d.value(values, token)
}

// place names the current document.
func (d *documents) place() string { return fmt.Sprintf("document %d", d.count) }

// give hands out a document, and begins the next object.
func (d *documents) give(doc ipam.Document) error {
	d.text.Next()
	doc.File = d.file
	if doc.Place == "" {
		doc.Place = d.place()
	}
	return d.take(doc)
}
