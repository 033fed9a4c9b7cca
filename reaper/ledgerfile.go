package reaper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
)

// ledgerVersion is the format that Encode writes and DecodeLedger reads.
const ledgerVersion = 2

// lastSecond is the last second that RFC 3339 can write, in seconds since 1970. Much
// later times overflow and become times in the past.
const lastSecond = 253_402_300_799

// maxGrace is the largest grace that is remembered, in seconds: about 68 years.
const maxGrace = math.MaxInt32

// The sizes of the stored form, in bytes. Each entry has its key, and a value of no more
// than so many.
const (
	headSize   = 96 // version, figures, doubt, the lengths of the lists, and the checksum
	keySize    = hashSize + tagSize
	secondSize = keySize + 6 // an entry with a time
	graceSize  = keySize + 5
	nodeSize   = keySize + 3 // of 2,000,000 names
	nameSize   = 3           // beside the name itself
)

// Encode returns the stored form. Equal ledgers have equal forms.
//
// The form is the version, the figures and the doubt; then the lists of first-seen times,
// of restores, of graces, of the names of nodes, and of the pods' nodes; and a CRC-32 of
// all of that in 4 bytes. A list is its length and its entries. An entry is a key of 16
// bytes and a number: seconds since 1970, seconds, or the index of a name. Keys and names
// are in ascending order. Each number is a varint.
//
// In every later version, too, the first byte is the version, and the last 4 bytes are that
// checksum. By these, DecodeLedger tells a later version from damage.
func (l Ledger) Encode() []byte {
	data := make([]byte, 0, l.maxEncoded())
	f, d := l.figures, l.doubt
	for _, n := range [...]uint64{ledgerVersion, uint64(f.Pods), uint64(f.Nodes), uint64(d.Pods), uint64(d.Nodes), uint64(d.At)} {
		data = binary.AppendUvarint(data, n)
	}
	data = appendTable(data, l.seen, func(at int64) uint64 { return uint64(at) })
	data = appendTable(data, l.restored, func(at int64) uint64 { return uint64(at) })
	data = appendTable(data, l.graces, func(seconds int32) uint64 { return uint64(seconds) })
	ranks, names := l.usedNames()
	data = binary.AppendUvarint(data, uint64(names))
	for i, name := range l.names {
		if ranks[i] > 0 {
			data = append(binary.AppendUvarint(data, uint64(len(name))), name...)
		}
	}
	data = appendTable(data, l.nodes, func(i uint32) uint64 { return uint64(ranks[i] - 1) })
	return binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data))
}

// usedNames returns the number of names that entries use, and for each name which of
// these it is, from 1; 0 for a name that no entry uses.
func (l Ledger) usedNames() (ranks []uint32, n uint32) {
	ranks = make([]uint32, len(l.names))
	for _, e := range l.nodes {
		ranks[e.value] = 1
	}
	for i, used := range ranks {
		n += used
		ranks[i] = used * n
	}
	return ranks, n
}

// maxEncoded returns the largest length of the stored form, in bytes.
func (l Ledger) maxEncoded() int {
	size := headSize + secondSize*(len(l.seen)+len(l.restored)) + graceSize*len(l.graces) + nodeSize*len(l.nodes)
	ranks, _ := l.usedNames()
	for i, rank := range ranks {
		if rank > 0 {
			size += nameSize + len(l.names[i])
		}
	}
	return size
}

// appendTable appends a list of keys with numbers.
func appendTable[V int32 | int64 | uint32](data []byte, t ledgerTable[V], number func(V) uint64) []byte {
	data = binary.AppendUvarint(data, uint64(len(t)))
	for _, e := range t {
		data = binary.AppendUvarint(append(data, e.key[:]...), number(e.value))
	}
	return data
}

// DecodeLedger reads the form that Encode returns. For data of a later version, the error wraps
// ErrLedgerNewer; for any other data, ErrLedgerDamaged.
func DecodeLedger(data []byte) (Ledger, error) {
	l, err := decodeLedger(data)
	switch {
	case errors.Is(err, ErrLedgerNewer):
		return Ledger{}, err
	case err != nil:
		return Ledger{}, fmt.Errorf("%w: %w", ErrLedgerDamaged, err)
	}
	return l, nil
}

func decodeLedger(data []byte) (l Ledger, err error) {
	body := data[:max(0, len(data)-crc32.Size)]
	if len(data) < crc32.Size || crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(data[len(body):]) {
		return l, errors.New("its checksum is wrong")
	}
	switch {
	case data[0] > ledgerVersion:
		return l, fmt.Errorf("%w (it has version %d, this program reads %d)", ErrLedgerNewer, data[0], ledgerVersion)
	case data[0] != ledgerVersion:
		return l, fmt.Errorf("version %d, this program reads %d", data[0], ledgerVersion)
	}
	r := ledgerReader{rest: body}
	r.number(ledgerVersion)
	l.figures = figures{int(r.number(math.MaxInt)), int(r.number(math.MaxInt))}
	l.doubt = doubt{figures{int(r.number(math.MaxInt)), int(r.number(math.MaxInt))}, int64(r.number(lastSecond))}
	l.seen = readTable[int64](&r, lastSecond)
	l.restored = readTable[int64](&r, lastSecond)
	l.graces = readTable[int32](&r, maxGrace)
	l.names = r.names()
	l.nodes = readTable[uint32](&r, math.MaxUint32)
	if slices.ContainsFunc(l.nodes, func(e tableEntry[uint32]) bool { return uint64(e.value) >= uint64(len(l.names)) }) {
		r.fail("a pod is on a node whose name is not there")
	}
	if r.err == nil && len(r.rest) > 0 {
		r.fail("%d bytes follow its end", len(r.rest))
	}
	return l, r.err
}

// A ledgerReader reads a stored form. After the first error, it returns zero values.
type ledgerReader struct {
	rest []byte
	err  error
}

// fail keeps the first error, and reads no further.
func (r *ledgerReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	r.rest = nil
}

// number reads a number, which is at most most.
func (r *ledgerReader) number(most uint64) uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > most {
		r.fail("a number is cut short or out of range")
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// bytes reads so many bytes.
func (r *ledgerReader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.fail("it is cut short")
		return nil
	}
	data := r.rest[:n]
	r.rest = r.rest[n:]
	return data
}

// names reads the names of nodes.
func (r *ledgerReader) names() []string {
	var names []string
	for range r.number(uint64(len(r.rest))) {
		name := string(r.bytes(r.number(uint64(len(r.rest)))))
		if len(names) > 0 && name <= names[len(names)-1] {
			r.fail("the names of its nodes are not in order")
		}
		if r.err != nil {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// readTable reads a list of keys with numbers, which are at most most.
func readTable[V int32 | int64 | uint32](r *ledgerReader, most uint64) ledgerTable[V] {
	n := r.number(uint64(len(r.rest) / (keySize + 1)))
	t := make(ledgerTable[V], 0, n)
	for range n {
		k := r.bytes(keySize)
		value := V(r.number(most))
		if r.err != nil {
			return nil
		}
		if e := (tableEntry[V]{ledgerKey(k), value}); len(t) == 0 || t[len(t)-1].key.compare(e.key) < 0 {
			t = append(t, e)
		} else {
			r.fail("its keys are not in order")
		}
	}
	return t
}
