// Package ledgertest has the stored form of a ledger as tests read and write it. It is a
// second implementation of that form: a change to the program's does not change this one.
package ledgertest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
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

	TotalReleased map[string]uint64 `json:"-"` // by backend
	TotalRuns     map[string]uint64 `json:"-"` // by result

	Unlisted map[string]int64 `json:"unlisted,omitempty"` // all 0
	Unread   map[string]int64 `json:"unread,omitempty"`

	Meanings []Meaning `json:"meanings,omitempty"`
}

// A Meaning is a node that a store may mean by a name.
type Meaning struct {
	Backend string `json:"backend"`
	Name    string `json:"name"`
	Node    string `json:"node"`
	Seen    int64  `json:"seen"`
}

// A Run is how a run ended.
type Run struct {
	ID        string  `json:"id"`
	Began     int64   `json:"began,omitzero"`
	By        string  `json:"by,omitzero"`
	DryRun    bool    `json:"dryRun,omitzero"`
	Selection string  `json:"selection,omitzero"`
	Overrides string  `json:"overrides,omitzero"`
	Ended     bool    `json:"ended,omitzero"`
	ExitCode  int     `json:"exitCode,omitzero"`
	Error     string  `json:"error,omitzero"`
	Due       int64   `json:"due,omitzero"`
	Released  int64   `json:"released,omitzero"`
	NotBegun  int64   `json:"notBegun,omitzero"`
	RestoreOf string  `json:"restoreOf,omitzero"`
	Restore   Restore `json:"restore,omitzero"`
}

// A Restore counts records, by what became of them.
type Restore struct{ Restored, Present, Taken, Failed int64 }

// A head is the part of the stored form that is in JSON.
type head struct {
	Figures struct{ Pods, Nodes int64 }     `json:"figures,omitzero"`
	Doubt   struct{ Pods, Nodes, At int64 } `json:"doubt,omitzero"`
	Epoch   int64                           `json:"epoch,omitzero"`
	Salt    []byte                          `json:"salt"`
	Nodes   []string                        `json:"nodes,omitempty"`
	Runs    []Run                           `json:"runs,omitempty"`
	Stores  map[string]string               `json:"stores,omitempty"`
	Totals  struct {
		Released map[string]uint64 `json:"released,omitempty"`
		Runs     map[string]uint64 `json:"runs,omitempty"`
	} `json:"totals"`
	Meanings []Meaning `json:"meanings,omitempty"`
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
	version = 9
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
	var h head
	if err := json.Unmarshal(r.bytes(r.number()), &h); err != nil {
		return l, err
	}
	l.Figures = Figures(h.Figures)
	l.Doubt = Doubt{Figures{h.Doubt.Pods, h.Doubt.Nodes}, h.Doubt.At}
	l.Runs, l.Stores, l.TotalReleased, l.TotalRuns = h.Runs, h.Stores, h.Totals.Released, h.Totals.Runs
	l.Meanings = h.Meanings
	copy(l.Salt[:], h.Salt)
	l.Seen, l.Restored, l.Graces = r.list(h.Epoch), r.list(h.Epoch), r.list(0)
	l.Nodes = make(map[string]string)
	for key, n := range r.list(0) {
		if n < int64(len(h.Nodes)) {
			l.Nodes[key] = h.Nodes[n]
		}
	}
	l.Unlisted, l.Unread = r.list(0), r.list(0)
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
	h := head{Salt: l.Salt[:], Nodes: slices.Compact(slices.Sorted(maps.Values(l.Nodes))), Runs: l.Runs, Stores: l.Stores, Meanings: l.Meanings}
	h.Figures.Pods, h.Figures.Nodes = l.Figures.Pods, l.Figures.Nodes
	h.Doubt.Pods, h.Doubt.Nodes, h.Doubt.At = l.Doubt.Pods, l.Doubt.Nodes, l.Doubt.At
	h.Totals.Released, h.Totals.Runs = l.TotalReleased, l.TotalRuns
	times := slices.AppendSeq(slices.Collect(maps.Values(l.Seen)), maps.Values(l.Restored))
	if len(times) > 0 {
		h.Epoch = slices.Min(times)
	}
	text, err := json.Marshal(h)
	if err != nil {
		panic(err)
	}
	data := binary.AppendUvarint(binary.AppendUvarint(nil, l.Version), uint64(len(text)))
	data = appendList(append(data, text...), l.Seen, h.Epoch)
	data = appendList(data, l.Restored, h.Epoch)
	data = appendList(data, l.Graces, 0)
	indices := make(map[string]int64, len(l.Nodes))
	for key, name := range l.Nodes {
		i, _ := slices.BinarySearch(h.Nodes, name)
		indices[key] = int64(i)
	}
	data = appendList(data, indices, 0)
	return Sum(appendList(appendList(data, l.Unlisted, 0), l.Unread, 0))
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
