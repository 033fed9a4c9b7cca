package ledger

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/census"
)

// ledgerVersion is the format that Encode writes and Decode reads.
const ledgerVersion = 7

// lastSecond is the last second that RFC 3339 can write, in seconds since 1970. Much
// later times overflow and become times in the past.
const lastSecond = 253_402_300_799

// MaxGrace is the largest grace that is remembered, in seconds: about 68 years.
const MaxGrace = math.MaxInt32

// usualEntry is the approximate length of an entry of a large ledger, in bytes.
const usualEntry = 10

// Encode returns the stored form. Equal ledgers of one salt have equal forms.
//
// The form is the version, the figures, the doubt, the earliest time, and the salt; then the
// lists of first-seen times, of restores, of graces, of the names of nodes, and of the pods'
// nodes; then the runs, as appendRuns has them; then the number of stores and, in ascending order
// of their backends, the backend and the identity of each; then the lists of what was not listed and
// of what could not be read; and a CRC-32 of all of that in 4 bytes.
// The names are their number and, in ascending order, the length and the bytes of each. Any other
// list is the number of backends and, for each, its tag in 4 bytes, the number of its entries, and
// the entries in ascending order of their hashes. An entry is the difference of its hash from the
// one before, and a number: seconds since the earliest time, seconds, the index of a name, or 0. Each
// number is a varint, so an entry of a ledger of 100,000 takes 9 bytes.
//
// In every later version, too, the first byte is the version, and the last 4 bytes are that
// checksum: so Decode can tell a later version from damage.
func (l Ledger) Encode() []byte {
	ranks := make(map[string]uint64)
	for _, e := range l.nodes {
		ranks[e.value] = 0
	}
	names := slices.Sorted(maps.Keys(ranks))
	data := make([]byte, 0, usualEntry*(l.Len()+len(names))+100)
	f, d, epoch := l.Figures, l.Doubt, l.earliest()
	for _, n := range [...]uint64{ledgerVersion, uint64(f.Pods), uint64(f.Nodes), uint64(d.Pods), uint64(d.Nodes), uint64(d.At), uint64(epoch)} {
		data = binary.AppendUvarint(data, n)
	}
	data = append(data, l.salt[:]...)
	data = appendTable(data, l.seen, func(at int64) uint64 { return uint64(at - epoch) })
	data = appendTable(data, l.restored, func(at int64) uint64 { return uint64(at - epoch) })
	data = appendTable(data, l.graces, func(seconds int32) uint64 { return uint64(seconds) })
	data = binary.AppendUvarint(data, uint64(len(names)))
	for rank, name := range names {
		ranks[name] = uint64(rank)
		data = appendText(data, name)
	}
	data = appendTable(data, l.nodes, func(name string) uint64 { return ranks[name] })
	data = appendRuns(data, l.Runs)
	data = binary.AppendUvarint(data, uint64(len(l.Stores)))
	for _, backend := range slices.Sorted(maps.Keys(l.Stores)) {
		data = appendText(appendText(data, backend), l.Stores[backend])
	}
	zero := func(int32) uint64 { return 0 }
	data = appendTable(appendTable(data, l.unlisted, zero), l.unread, zero)
	return binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data))
}

// earliest returns the earliest time in the ledger; 0 if it has none.
func (l Ledger) earliest() int64 {
	earliest := int64(lastSecond)
	for _, times := range [...]ledgerTable[int64]{l.seen, l.restored} {
		for _, e := range times {
			earliest = min(earliest, e.value)
		}
	}
	if len(l.seen)+len(l.restored) == 0 {
		return 0
	}
	return earliest
}

// appendTable appends a list of keys with numbers.
func appendTable[V cmp.Ordered](data []byte, t ledgerTable[V], number func(V) uint64) []byte {
	var backends [][]tableEntry[V]
	for rest := t; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(e tableEntry[V]) bool { return e.key.tag != rest[0].key.tag })
		if n < 0 {
			n = len(rest)
		}
		backends, rest = append(backends, rest[:n]), rest[n:]
	}
	data = binary.AppendUvarint(data, uint64(len(backends)))
	for _, entries := range backends {
		data = binary.BigEndian.AppendUint32(data, uint32(entries[0].key.tag))
		data = binary.AppendUvarint(data, uint64(len(entries)))
		before := uint64(0)
		for _, e := range entries {
			data = binary.AppendUvarint(data, e.key.hash-before)
			data = binary.AppendUvarint(data, number(e.value))
			before = e.key.hash
		}
	}
	return data
}

// Decode reads the form that Encode returns. For data of a later version, the error wraps
// ErrNewer; for any other data, ErrDamaged.
func Decode(data []byte) (Ledger, error) {
	l, err := decodeLedger(data)
	switch {
	case errors.Is(err, ErrNewer):
		return Ledger{}, err
	case err != nil:
		return Ledger{}, fmt.Errorf("%w: %w", ErrDamaged, err)
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
		return l, fmt.Errorf("%w (it has version %d, this program reads %d)", ErrNewer, data[0], ledgerVersion)
	case data[0] != ledgerVersion:
		return l, fmt.Errorf("version %d, this program reads %d", data[0], ledgerVersion)
	}
	r := ledgerReader{rest: body}
	r.number(ledgerVersion)
	l.Figures = census.Figures{Pods: int(r.number(math.MaxInt)), Nodes: int(r.number(math.MaxInt))}
	l.Doubt = Doubt{census.Figures{Pods: int(r.number(math.MaxInt)), Nodes: int(r.number(math.MaxInt))}, int64(r.number(lastSecond))}
	epoch := int64(r.number(lastSecond))
	copy(l.salt[:], r.bytes(uint64(len(l.salt))))
	at := func(n uint64) int64 { return epoch + int64(n) }
	l.seen = readTable(&r, lastSecond-uint64(epoch), at)
	l.restored = readTable(&r, lastSecond-uint64(epoch), at)
	l.graces = readTable(&r, MaxGrace, func(n uint64) int32 { return int32(n) })
	names := r.names()
	l.nodes = readTable(&r, math.MaxUint64, func(n uint64) string {
		if n >= uint64(len(names)) {
			r.fail("a pod is on a node whose name is not there")
			return ""
		}
		return names[n]
	})
	l.Runs = r.runs()
	l.Stores = r.stores()
	zero := func(uint64) int32 { return 0 }
	l.unlisted = readTable(&r, 0, zero)
	l.unread = readTable(&r, 0, zero)
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

// number reads a number of at most most.
func (r *ledgerReader) number(most uint64) uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > most {
		r.fail("a number is cut short or out of range")
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// bytes reads n bytes.
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
		name := r.text()
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

// stores reads the identities of stores.
func (r *ledgerReader) stores() map[string]string {
	var stores map[string]string
	last := ""
	for range r.number(uint64(len(r.rest))) {
		backend, id := r.text(), r.text()
		if backend <= last {
			r.fail("its stores are not in order")
		}
		if r.err != nil {
			return nil
		}
		if stores == nil {
			stores = make(map[string]string)
		}
		stores[backend], last = id, backend
	}
	return stores
}

// readTable reads a list of keys with numbers of at most most.
func readTable[V cmp.Ordered](r *ledgerReader, most uint64, value func(uint64) V) ledgerTable[V] {
	var t ledgerTable[V]
	for range r.number(uint64(len(r.rest))) {
		tag := r.bytes(4)
		n := r.number(uint64(len(r.rest) / 2)) // an entry has at least two bytes
		if r.err != nil {
			return nil
		}
		k := ledgerKey{tag: backendTag(binary.BigEndian.Uint32(tag))}
		t = slices.Grow(t, int(n))
		for range n {
			k.hash += r.number(math.MaxUint64 - k.hash)
			e := tableEntry[V]{k, value(r.number(most))}
			if len(t) > 0 && t[len(t)-1].key.compare(k) >= 0 {
				r.fail("its keys are not in order")
			}
			if r.err != nil {
				return nil
			}
			t = append(t, e)
		}
	}
	return t
}
