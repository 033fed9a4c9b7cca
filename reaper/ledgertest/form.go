// Package ledgertest has the stored form of a ledger as tests read and write it. It is a
// second implementation of that form: a change of the program's does not change this one.
package ledgertest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"maps"
	"slices"
)

// A Ledger is the content of a stored ledger. Its keys are in hexadecimal.
type Ledger struct {
	Version  uint64            `json:"-"`
	Seen     map[string]int64  `json:"seen"`
	Nodes    map[string]string `json:"nodes,omitempty"` // names by key
	Graces   map[string]int64  `json:"graces,omitempty"`
	Restored map[string]int64  `json:"restored,omitempty"`
	Figures  Figures           `json:"figures,omitzero"`
	Doubt    Doubt             `json:"doubt,omitzero"`
}

// Figures are the numbers of a census.
type Figures struct {
	Pods  int64 `json:"pods,omitempty"`
	Nodes int64 `json:"nodes,omitempty"`
}

// A Doubt has the figures that runs did not believe, and since when.
type Doubt struct {
	Figures
	At int64 `json:"at,omitempty"`
}

const (
	version = 2
	keySize = 16
)

// Key returns a key that stands for a short name.
func Key(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:keySize])
}

// Decode reads the stored form.
func Decode(text []byte) (l Ledger, err error) {
	r := reader{rest: text[:max(0, len(text)-crc32.Size)]}
	l.Version = uint64(r.number())
	for _, n := range []*int64{&l.Figures.Pods, &l.Figures.Nodes, &l.Doubt.Pods, &l.Doubt.Nodes, &l.Doubt.At} {
		*n = r.number()
	}
	l.Seen, l.Restored, l.Graces = r.list(), r.list(), r.list()
	var names []string
	for range r.number() {
		names = append(names, string(r.bytes(r.number())))
	}
	l.Nodes = make(map[string]string)
	for key, n := range r.list() {
		if n < int64(len(names)) {
			l.Nodes[key] = names[n]
		}
	}
	if r.cut || len(r.rest) > 0 {
		return l, errors.New("the ledger has another form than the tests know")
	}
	return l, nil
}

// Encode returns the stored form. Without a version, it is that of today.
func (l Ledger) Encode() []byte {
	if l.Version == 0 {
		l.Version = version
	}
	data := binary.AppendUvarint(nil, l.Version)
	for _, n := range []int64{l.Figures.Pods, l.Figures.Nodes, l.Doubt.Pods, l.Doubt.Nodes, l.Doubt.At} {
		data = binary.AppendUvarint(data, uint64(n))
	}
	for _, list := range []map[string]int64{l.Seen, l.Restored, l.Graces} {
		data = appendList(data, list)
	}
	names := slices.Compact(slices.Sorted(maps.Values(l.Nodes)))
	data = binary.AppendUvarint(data, uint64(len(names)))
	ranks := make(map[string]int64, len(names))
	for i, name := range names {
		data = append(binary.AppendUvarint(data, uint64(len(name))), name...)
		ranks[name] = int64(i)
	}
	indices := make(map[string]int64, len(l.Nodes))
	for key, name := range l.Nodes {
		indices[key] = ranks[name]
	}
	return Sum(appendList(data, indices))
}

// Sum appends the checksum of a stored form.
func Sum(body []byte) []byte {
	return binary.BigEndian.AppendUint32(slices.Clone(body), crc32.ChecksumIEEE(body))
}

func appendList(data []byte, list map[string]int64) []byte {
	data = binary.AppendUvarint(data, uint64(len(list)))
	for _, id := range slices.Sorted(maps.Keys(list)) {
		key, err := hex.DecodeString(id)
		if err != nil {
			panic(err)
		}
		data = binary.AppendUvarint(append(data, key...), uint64(list[id]))
	}
	return data
}

// A reader reads the stored form.
type reader struct {
	rest []byte
	cut  bool // there was less than it says
}

func (r *reader) number() int64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.cut, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return int64(n)
}

func (r *reader) bytes(n int64) []byte {
	if n < 0 || n > int64(len(r.rest)) {
		r.cut, r.rest = true, nil
		return nil
	}
	data := r.rest[:n]
	r.rest = r.rest[n:]
	return data
}

func (r *reader) list() map[string]int64 {
	list := make(map[string]int64)
	for range r.number() {
		key := hex.EncodeToString(r.bytes(keySize))
		list[key] = r.number()
		if r.cut {
			break
		}
	}
	return list
}
