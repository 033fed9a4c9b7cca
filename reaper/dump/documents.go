// Package dump reads the JSON and YAML that kubectl and etcdctl print, as documents.
package dump

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
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

// Hint is for files that cannot be read: how to make readable ones.
const Hint = `give what "ip-reaper dump", "kubectl get -o yaml" or "etcdctl get -w json" printed`

// Dumps are the contents of files.
type Dumps struct {
	Server    http.RoundTripper // answers as the API server that the files are of
	HasPods   bool
	Documents []ipam.Document // but for pods; of other objects by which a cluster is judged, only that there is a list
	Time      time.Time       // when the latest dump by ip-reaper was made; zero if there is none
	Partial   string          // what a dump by ip-reaper failed with; empty if none did
	Ledger    []byte          // in its stored form, of the latest dump by ip-reaper; empty if it has none
	Policy    Policy          // of the latest dump by ip-reaper
	Pods      int

	server        *server
	lists, others int // lists that may be of pods, and other documents but pods
}

// Read reads the files with the stores and the pods, each once.
//
// An error about a file or its name is an *ipam.InputError.
func Read(ctx context.Context, in io.Reader, files []string) (*Dumps, error) {
	read := &Dumps{Documents: []ipam.Document{}, server: newServer()}
	for i, file := range files {
		if slices.Contains(files[:i], file) {
			return nil, ipam.BadInput(fmt.Errorf("%s is given twice", file), "name each file once")
		}
		err := read.file(ctx, in, file)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if usage := (*ipam.InputError)(nil); err != nil && !errors.As(err, &usage) {
			err = ipam.BadInput(err, Hint)
		}
		if err != nil {
			return nil, err
		}
	}
	for of, why := range read.server.missing {
		if why == absent { // a list without an item says that there is none
			read.Documents = append(read.Documents, ipam.Document{APIVersion: of.Group + "/v1", Kind: of.Kind, List: true})
		}
	}
	// An empty list alone is of a cluster without pods. Beside anything else, the pods are missing.
	read.HasPods = read.Pods > 0 || read.lists > 0 && read.others == 0
	if read.HasPods {
		read.server.add(ipam.Document{APIVersion: "v1", Kind: "PodList", List: true})
	}
	read.Server = read.server
	return read, nil
}

// file reads one file.
func (d *Dumps) file(ctx context.Context, in io.Reader, file string) error {
	text, name, err := Open(ctx, in, file)
	if err != nil {
		return ipam.BadInput(err, "")
	}
	defer text.Close()
	return readDocuments(name, text, func(doc ipam.Document) error {
		if doc.Is(ipam.DumpGroup, ipam.DumpKind) {
			return d.end(doc)
		}
		switch {
		case doc.More && judgesCluster(doc.APIVersion):
			return fmt.Errorf("%s is only a part of a list: dump the whole list", doc.Place)
		case doc.Is("", "List"), doc.Is("", "PodList"):
			d.lists++
		case doc.Is("", "Pod"):
			d.Pods++
		default:
			d.others++
		}
		reduced, ofCluster, err := state.Reduce(doc)
		if err != nil {
			return err
		}
		doc.Data = reduced
		d.server.add(doc)
		if ofCluster {
			doc.Data, doc.List = nil, true // what is left says that there is a list
		}
		if !doc.Is("", "Pod") {
			d.Documents = append(d.Documents, doc)
		}
		return ctx.Err()
	})
}

// judgesCluster reports whether an API version may have objects by which a run judges a cluster. Kubernetes' own
// groups of these have no dot.
func judgesCluster(apiVersion string) bool {
	return apiVersion != "" && !strings.Contains(apiVersion, ".") || strings.HasPrefix(apiVersion, machineGroup+"/")
}

// end reads the last document of a dump by ip-reaper.
func (d *Dumps) end(doc ipam.Document) error {
	var last end
	if err := kube.Decode(doc.Data, &last); err != nil {
		return fmt.Errorf("%s: %w", doc.Place, err)
	}
	if last.Time.After(d.Time) {
		d.Time, d.Ledger, d.Policy = last.Time, last.Ledger, last.Policy
	}
	d.Partial = cmp.Or(d.Partial, last.Error)
	if last.Error == "" {
		d.server.end(last)
	}
	return nil
}

// Ignored returns a warning for each kind of objects of a file that belong to no store, and
// a warning for each list that is incomplete.
func Ignored(documents []ipam.Document) []string {
	var sentences []string
	type kindOf struct{ file, kind string }
	counts := make(map[kindOf]int)
	for _, d := range documents {
		kind := "without a kind"
		switch {
		case d.List && d.More:
			sentences = append(sentences, fmt.Sprintf("%s: %s is only a part of a list: dump the whole list", d.File, d.Place))
			continue
		case d.List:
			continue
		case d.Kind != "":
			kind = fmt.Sprintf("of kind %s (%s)", d.Kind, d.APIVersion)
		case d.Key != "":
			kind = "under etcd keys that are not Calico's"
		}
		counts[kindOf{d.File, kind}]++
	}
	var ignored []string
	for one, n := range counts {
		ignored = append(ignored, fmt.Sprintf("%s: ignored objects: %d %s", one.file, n, one.kind))
	}
	slices.Sort(ignored)
	return append(sentences, ignored...)
}

// Stdin is the name of a file that means standard input.
const Stdin = "-"

// Open opens a file, or standard input for Stdin, and returns the file's name for messages.
// Reading standard input ends with an error when ctx ends.
func Open(ctx context.Context, in io.Reader, file string) (text io.ReadCloser, name string, err error) {
	if file != Stdin {
		text, err = OpenFile(file)
		return text, file, err
	}
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, in)
		w.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { r.CloseWithError(ctx.Err()) })
	return r, "stdin", nil
}

// errNoFile is the error for a folder, a device, a pipe or a socket. A device such as /dev/zero has
// no end, and opening a pipe waits for a writer.
var errNoFile = errors.New("it is not a regular file: for a pipe, give /dev/stdin")

// OpenFile opens a regular file, or one that a shell has already opened: /dev/stdin, or
// /dev/fd/63 for a process substitution.
func OpenFile(file string) (*os.File, error) {
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() && !isOpen(file) {
		return nil, &fs.PathError{Op: "open", Path: file, Err: errNoFile}
	}
	return os.Open(file)
}

// isOpen reports whether the process was started with the file open.
func isOpen(file string) bool {
	return file == "/dev/stdin" || strings.HasPrefix(file, "/dev/fd/") || strings.HasPrefix(file, "/proc/self/fd/")
}
