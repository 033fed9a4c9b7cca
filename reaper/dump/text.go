package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"

	"sigs.k8s.io/yaml"
)

// separator matches what separates the documents of a text: "---", "...", and etcd keys, each
// of which names the value that follows. No document contains such a line.
var separator = regexp.MustCompile(`(?m)^(?:---|\.\.\.)(?:[ \t\r]|$)|^/calico/.*$`)

// text reads YAML documents, or what etcdctl printed.
func (d *documents) text(in io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(in, maxText+1))
	if err != nil {
		return err
	}
	if len(text) > maxText {
		return errTextTooLarge
	}
	key, from, line := "", 0, 1
	for _, mark := range append(separator.FindAllIndex(text, -1), []int{len(text), len(text)}) {
		document := text[from:mark[0]]
		if key != "" {
			d.count++
			err = d.keyed(key, bytes.TrimSpace(document))
		} else {
			err = d.yaml(document, line)
		}
		if err != nil {
			return err
		}
		line += bytes.Count(document, []byte("\n"))
		from, key = mark[1], ""
		if found := text[mark[0]:mark[1]]; bytes.HasPrefix(found, []byte("/")) {
			key = string(bytes.TrimSpace(found))
		}
	}
	return nil
}

// yaml reads one YAML document, which begins at the given line of the file. It uses kubectl's
// library, so that 64-bit integers stay exact.
func (d *documents) yaml(text []byte, line int) error {
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
	return d.newList().value(values, token)
}
