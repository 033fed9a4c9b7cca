// Package ledgertest has the stored form of a ledger as tests read and write it. It is a
// second implementation of that form: a change to the program's does not change this one.
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
	Salt     [16]byte          `json:"-"`
	Seen     map[string]int64  `json:"seen"`
	Nodes    map[string]string `json:"nodes,omitempty"` // names by key
	Graces   map[string]int64  `json:"graces,omitempty"`
	Restored map[string]int64  `json:"restored,omitempty"`
	Figures  Figures           `json:"figures,omitzero"`
	Doubt    Doubt             `json:"doubt,omitzero"`
	Runs     []Run             `json:"-"`
	Stores   map[string]string `json:"stores,omitempty"` // identities by backend

	TotalReleased map[string]int64 `json:"-"` // by backend
	TotalRuns     map[string]int64 `json:"-"` // by result

	Unlisted map[string]int64 `json:"unlisted,omitempty"` // all 0
	Unread   map[string]int64 `json:"unread,omitempty"`
	Held     map[string]int64 `json:"held,omitempty"`
}

// A Run is how a run ended. Its flags are 1 for a dry run and 2 for one that has ended.
type Run struct {
	ID, By, Selection, Overrides, Error, RestoreOf string

	Began, Flags, ExitCode, Due, Released, NotBegun, Restored, Present, Taken, Failed int64
}

// texts are those of a run, and numbers follow them.
func (r *Run) texts() [6]*string {
	return [...]*string{&r.ID, &r.By, &r.Selection, &r.Overrides, &r.Error, &r.RestoreOf}
}

func (r *Run) numbers() [10]*int64 {
	return [...]*int64{&r.Began, &r.Flags, &r.ExitCode, &r.Due, &r.Released, &r.NotBegun, &r.Restored, &r.Present, &r.Taken, &r.Failed}
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
	version = 7
	keySize = 12 // the tag of the backend and the hash
)

// Key returns a key that stands for a short name, for a backend that no program has.
func Key(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "00000001" + hex.EncodeToString(sum[:8])
}

// Decode reads the stored form.
func Decode(text []byte) (l Ledger, err error) {
	r := reader{rest: text[:max(0, len(text)-crc32.Size)]}
	l.Version = uint64(r.number())
	for _, n := range []*int64{&l.Figures.Pods, &l.Figures.Nodes, &l.Doubt.Pods, &l.Doubt.Nodes, &l.Doubt.At} {
		*n = r.number()
	}
	epoch := r.number()
	copy(l.Salt[:], r.bytes(int64(len(l.Salt))))
	l.Seen, l.Restored, l.Graces = r.list(epoch), r.list(epoch), r.list(0)
	var names []string
	for range r.number() {
		names = append(names, string(r.bytes(r.number())))
	}
	l.Nodes = make(map[string]string)
	for key, n := range r.list(0) {
		if n < int64(len(names)) {
			l.Nodes[key] = names[n]
		}
	}
	for range r.number() {
		var run Run
		for _, text := range run.texts() {
			*text = string(r.bytes(r.number()))
		}
		for _, n := range run.numbers() {
			*n = r.number()
		}
		l.Runs = append(l.Runs, run)
	}
	for range r.number() {
		backend := string(r.bytes(r.number()))
		if l.Stores == nil {
			l.Stores = make(map[string]string)
		}
		l.Stores[backend] = string(r.bytes(r.number()))
	}
	for _, totals := range []*map[string]int64{&l.TotalReleased, &l.TotalRuns} {
		for range r.number() {
			if *totals == nil {
				*totals = make(map[string]int64)
			}
			name := string(r.bytes(r.number()))
			(*totals)[name] = r.number()
		}
	}
	l.Unlisted, l.Unread, l.Held = r.list(0), r.list(0), r.list(epoch)
	if r.cut || len(r.rest) > 0 {
		return l, errors.New("the ledger has another form than the tests know")
	}
	return l, nil
}

// Encode returns the stored form. Without a version, it is the current one.
func (l Ledger) Encode() []byte {
	if l.Version == 0 {
		l.Version = version
	}
	data := binary.AppendUvarint(nil, l.Version)
	for _, n := range []int64{l.Figures.Pods, l.Figures.Nodes, l.Doubt.Pods, l.Doubt.Nodes, l.Doubt.At} {
		data = binary.AppendUvarint(data, uint64(n))
	}
	times := slices.AppendSeq(slices.AppendSeq(slices.Collect(maps.Values(l.Seen)), maps.Values(l.Restored)), maps.Values(l.Held))
	epoch := int64(0)
	if len(times) > 0 {
		epoch = slices.Min(times)
	}
	data = append(binary.AppendUvarint(data, uint64(epoch)), l.Salt[:]...)
	data = appendList(data, l.Seen, epoch)
	data = appendList(data, l.Restored, epoch)
	data = appendList(data, l.Graces, 0)
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
	data = binary.AppendUvarint(appendList(data, indices, 0), uint64(len(l.Runs)))
	for _, run := range l.Runs {
		for _, text := range run.texts() {
			data = append(binary.AppendUvarint(data, uint64(len(*text))), *text...)
		}
		for _, n := range run.numbers() {
			data = binary.AppendUvarint(data, uint64(*n))
		}
	}
	data = binary.AppendUvarint(data, uint64(len(l.Stores)))
	for _, backend := range slices.Sorted(maps.Keys(l.Stores)) {
		for _, text := range []string{backend, l.Stores[backend]} {
			data = append(binary.AppendUvarint(data, uint64(len(text))), text...)
		}
	}
	for _, totals := range []map[string]int64{l.TotalReleased, l.TotalRuns} {
		data = binary.AppendUvarint(data, uint64(len(totals)))
		for _, name := range slices.Sorted(maps.Keys(totals)) {
			data = append(binary.AppendUvarint(data, uint64(len(name))), name...)
			data = binary.AppendUvarint(data, uint64(totals[name]))
		}
	}
	return Sum(appendList(appendList(appendList(data, l.Unlisted, 0), l.Unread, 0), l.Held, epoch))
}

// Sum appends the checksum of a stored form.
func Sum(body []byte) []byte {
	return binary.BigEndian.AppendUint32(slices.Clone(body), crc32.ChecksumIEEE(body))
}

// appendList appends a list of keys with numbers, each reduced by less.
func appendList(data []byte, list map[string]int64, less int64) []byte {
	byTag := make(map[uint32][]uint64)
	numbers := make(map[[2]uint64]int64, len(list))
	for id, number := range list {
		key, err := hex.DecodeString(id)
		if err != nil || len(key) != keySize {
			panic(id + " is no key")
		}
		tag, hash := binary.BigEndian.Uint32(key), binary.BigEndian.Uint64(key[4:])
		byTag[tag] = append(byTag[tag], hash)
		numbers[[2]uint64{uint64(tag), hash}] = number
	}
	data = binary.AppendUvarint(data, uint64(len(byTag)))
	for _, tag := range slices.Sorted(maps.Keys(byTag)) {
		data = binary.BigEndian.AppendUint32(data, tag)
		data = binary.AppendUvarint(data, uint64(len(byTag[tag])))
		before := uint64(0)
		for _, hash := range slices.Sorted(slices.Values(byTag[tag])) {
			data = binary.AppendUvarint(data, hash-before)
			data = binary.AppendUvarint(data, uint64(numbers[[2]uint64{uint64(tag), hash}]-less))
			before = hash
		}
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

// list reads a list of keys with numbers, each increased by more.
func (r *reader) list(more int64) map[string]int64 {
	list := make(map[string]int64)
	for range r.number() {
		tag := slices.Clone(r.bytes(4))
		hash := uint64(0)
		for range r.number() {
			hash += uint64(r.number())
			list[hex.EncodeToString(binary.BigEndian.AppendUint64(slices.Clone(tag), hash))] = more + r.number()
			if r.cut {
				return list
			}
		}
		if r.cut {
			break
		}
	}
	return list
}
