package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// Hints for files that cannot be read: how to make readable ones.
const (
	storesHint = `give what "kubectl get -o yaml" or "etcdctl get -w json" printed`
	podsHint   = "kubectl get pods,statefulsets,nodes -A -o json > pods.json"
)

// Dumps are the contents of files.
type Dumps struct {
	Stored  []ipam.Document // the objects of stores, and any others
	Cluster state.Dump      // pods, StatefulSets and nodes from the file with the pods
}

// Read reads the files with the stores, and the file with the pods unless its name is empty.
// One file may be both. Each file is read once.
//
// An error about a file or its name is an *ipam.InputError.
func Read(ctx context.Context, in io.Reader, stores []string, pods string) (*Dumps, error) {
	files := stores
	if pods != "" && !slices.Contains(stores, pods) {
		files = append([]string{pods}, stores...)
	}
	read := new(Dumps)
	for i, file := range files {
		if slices.Contains(files[:i], file) {
			return nil, ipam.BadInput(fmt.Errorf("%s is given twice", file), "name each file once")
		}
		hint := storesHint
		if file == pods {
			hint = podsHint
		}
		err := read.file(ctx, in, file, slices.Contains(stores, file), file == pods)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if usage := (*ipam.InputError)(nil); err != nil && !errors.As(err, &usage) {
			err = ipam.BadInput(err, hint)
		}
		if err != nil {
			return nil, err
		}
	}
	return read, nil
}

// file reads one file. It may hold stores, pods, or both.
func (d *Dumps) file(ctx context.Context, in io.Reader, file string, stores, pods bool) error {
	text, name, err := Open(ctx, in, file)
	if err != nil {
		return ipam.BadInput(err, "")
	}
	defer text.Close()
	err = readDocuments(name, text, func(doc ipam.Document) error {
		if pods {
			if taken, err := d.Cluster.Take(doc); taken || err != nil {
				return err
			}
		}
		if stores {
			d.Stored = append(d.Stored, doc)
		}
		return ctx.Err()
	})
	if err == nil && pods {
		if err = d.Cluster.Check(); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}
	return err
}

// Ignored returns a warning for each file with objects that belong to no store, and
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
	byFile := make(map[string][]string)
	for one, n := range counts {
		byFile[one.file] = append(byFile[one.file], fmt.Sprintf("%d %s", n, one.kind))
	}
	for _, file := range slices.Sorted(maps.Keys(byFile)) {
		slices.Sort(byFile[file])
		sentences = append(sentences, file+": ignored objects: "+strings.Join(byFile[file], ", "))
	}
	return sentences
}
