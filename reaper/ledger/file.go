package ledger

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/census"
)

// ledgerVersion is the format that Encode writes and Decode reads.
const ledgerVersion = 9

// lastSecond is the last second that RFC 3339 can write, in seconds since 1970. Much
// later times overflow and become times in the past.
const lastSecond = 253_402_300_799

// MaxGrace is the largest grace that is remembered, in seconds: about 68 years.
const MaxGrace = math.MaxInt32

// usualEntry is the approximate length of an entry of a large ledger, in bytes.
const usualEntry = 10

// A head is what a stored form has in JSON: everything but the entries. Keys of maps are in order.
type head struct {
	Figures census.Figures    `json:"figures,omitzero"`
	Doubt   Doubt             `json:"doubt,omitzero"`
	Epoch   int64             `json:"epoch,omitzero"` // the earliest time, in seconds since 1970
	Salt    []byte            `json:"salt"`
	Nodes   []string          `json:"nodes,omitempty"` // the stored forms of places
	Runs    []Run             `json:"runs,omitempty"`
	Stores  map[string]string `json:"stores,omitempty"`
	Totals  Totals            `json:"totals"`
	Uses    []Use             `json:"uses,omitempty"`

	Meanings []Meaning `json:"meanings,omitempty"`
}

// Encode returns the stored form. Equal ledgers of one salt have equal forms.
//
// The form is the version; the length of the head, and the head; then the lists of first-seen times,
// of restores, of graces, of the pods' nodes, of what was not listed, and of what could not be read; and
// a CRC-32 of all of that in 4 bytes.
// A list is the number of backends and, for each, its tag in 4 bytes, the number of its entries, and
// the entries in ascending order of their hashes. An entry is the difference of its hash from the
// one before, and a number: seconds since the earliest time, seconds, the index of a node, or 0. Each
// number is a varint, so an entry of a ledger of 100,000 takes 9 bytes.
//
// In every later version, too, the first byte is the version, and the last 4 bytes are that
// checksum: so Decode can tell a later version from damage.
func (l Ledger) Encode() []byte {
	ranks := make(map[string]uint64)
	for _, e := range l.nodes {
		ranks[e.value] = 0
	}
	h := head{l.Figures, l.Doubt, l.earliest(), l.salt[:], slices.Sorted(maps.Keys(ranks)), l.Runs, l.Stores, l.Totals, l.Uses, l.Meanings}
	for rank, node := range h.Nodes {
		ranks[node] = uint64(rank)
	}
	text, _ := json.Marshal(h) // it has nothing that JSON lacks
	data := make([]byte, 0, usualEntry*l.Len()+len(text)+100)
	data = binary.AppendUvarint(append(data, ledgerVersion), uint64(len(text)))
	data = append(data, text...)
	sinceEpoch := func(at int64) uint64 { return uint64(at - h.Epoch) }
	data = appendTable(data, l.seen, sinceEpoch)
	data = appendTable(data, l.restored, sinceEpoch)
	data = appendTable(data, l.graces, func(seconds int32) uint64 { return uint64(seconds) })
	data = appendTable(data, l.nodes, func(node string) uint64 { return ranks[node] })
	zero := func(int32) uint64 { return 0 }
	data = appendTable(data, l.unlisted, zero)
	data = appendTable(data, l.unread, zero)
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
	if err != nil && !errors.Is(err, ErrNewer) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return Ledger{}, err
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
	r := ledgerReader{rest: body[1:]}
	h := r.head()
	l = Ledger{Figures: h.Figures, Doubt: h.Doubt, Runs: h.Runs, Totals: h.Totals, Uses: h.Uses, Stores: h.Stores, Meanings: h.Meanings}
	copy(l.salt[:], h.Salt)
	at := func(n uint64) int64 { return h.Epoch + int64(n) }
	last := lastSecond - uint64(h.Epoch)
	l.seen = readTable(&r, last, at)
	l.restored = readTable(&r, last, at)
	l.graces = readTable(&r, MaxGrace, func(n uint64) int32 { return int32(n) })
	l.nodes = readTable(&r, math.MaxUint64, func(n uint64) string {
		if n >= uint64(len(h.Nodes)) {
			r.fail("a pod is on a node whose name is not there")
			return ""
		}
		return h.Nodes[n]
	})
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

// head reads the head.
func (r *ledgerReader) head() (h head) {
	if err := json.Unmarshal(r.bytes(r.number(uint64(len(r.rest)))), &h); err != nil {
		r.fail("its head: %w", err)
	}
	times := []int64{h.Epoch, h.Doubt.At}
	for _, run := range h.Runs {
		times = append(times, run.Began)
	}
	for _, m := range h.Meanings {
		times = append(times, m.Seen)
	}
	if slices.Min(times) < 0 || slices.Max(times) > lastSecond {
		r.fail("a time is out of range")
	}
	return h
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
