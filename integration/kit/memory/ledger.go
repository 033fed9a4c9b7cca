package memory

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"slices"
)

// A Ledger is the stored form of a ledger. Its keys are in hexadecimal. It is a copy of
// the program's, since every later version has to read what this one wrote.
type Ledger struct {
	Version                        uint64
	Pods, Nodes                    int64
	DoubtPods, DoubtNodes, DoubtAt int64
	Seen, Restored, Graces         map[string]int64
	NodeOf                         map[string]string
}

const keySize = 16

// Decode reads what is under LedgerKey.
func Decode(data []byte) (l Ledger, err error) {
	zipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return l, err
	}
	text, err := io.ReadAll(zipped)
	if err != nil {
		return l, err
	}
	r := reader{rest: text[:max(0, len(text)-crc32.Size)]}
	l.Version = uint64(r.number())
	for _, n := range []*int64{&l.Pods, &l.Nodes, &l.DoubtPods, &l.DoubtNodes, &l.DoubtAt} {
		*n = r.number()
	}
	l.Seen, l.Restored, l.Graces = r.list(), r.list(), r.list()
	var names []string
	for range r.number() {
		names = append(names, string(r.bytes(r.number())))
	}
	l.NodeOf = map[string]string{}
	for key, n := range r.list() {
		if n < int64(len(names)) {
			l.NodeOf[key] = names[n]
		}
	}
	if len(r.rest) > 0 {
		r.cut = true
	}
	if r.cut {
		return l, errors.New("the ledger has another form than the tests know")
	}
	return l, nil
}

// Encode returns what stands under LedgerKey.
func (l Ledger) Encode() []byte {
	data := binary.AppendUvarint(nil, l.Version)
	for _, n := range []int64{l.Pods, l.Nodes, l.DoubtPods, l.DoubtNodes, l.DoubtAt} {
		data = binary.AppendUvarint(data, uint64(n))
	}
	for _, list := range []map[string]int64{l.Seen, l.Restored, l.Graces} {
		data = appendList(data, list)
	}
	names := slices.Compact(slices.Sorted(maps.Values(l.NodeOf)))
	data = binary.AppendUvarint(data, uint64(len(names)))
	for _, name := range names {
		data = append(binary.AppendUvarint(data, uint64(len(name))), name...)
	}
	indices := map[string]int64{}
	for key, name := range l.NodeOf {
		indices[key] = int64(slices.Index(names, name))
	}
	data = appendList(data, indices)
	return Zip(binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data)))
}

// Zip compresses text.
func Zip(text []byte) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write(text) // a buffer takes everything
	_ = w.Close()
	return buf.Bytes()
}

func appendList(data []byte, list map[string]int64) []byte {
	data = binary.AppendUvarint(data, uint64(len(list)))
	for _, id := range slices.Sorted(maps.Keys(list)) {
		key, _ := hex.DecodeString(id)
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
	list := map[string]int64{}
	for range r.number() {
		key := hex.EncodeToString(r.bytes(keySize))
		list[key] = r.number()
		if r.cut {
			break
		}
	}
	return list
}
