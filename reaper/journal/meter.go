package journal

import "fmt"

// MaxSize is the largest total size of the parts of a journal, in bytes: about 250,000
// records of 1 KiB.
const MaxSize = 256 << 20

// minCost is the least that a part counts, however small it is.
const minCost = 8 << 10

// errTooLarge says that a part is beyond MaxSize.
var errTooLarge = fmt.Errorf("%w: the parts have more than %d MiB together, and this part and those after it were not read", ErrDamaged, MaxSize>>20)

// A Meter decodes the parts of one journal as long as they total at most MaxSize bytes. The
// zero value is ready for use.
type Meter struct {
	total int
	costs map[string]int // by name
}

// Decode reads a part, whose name is for messages. A part that is decoded again under the
// same name counts once.
func (m *Meter) Decode(name string, data []byte) StoredPart {
	if m.costs == nil {
		m.costs = make(map[string]int)
	}
	cost := max(len(data), minCost)
	m.total += cost - m.costs[name]
	m.costs[name] = cost
	if m.total > MaxSize {
		return StoredPart{Name: name, Err: errTooLarge}
	}
	part, err := DecodePart(data)
	return StoredPart{Name: name, Part: part, Err: err}
}
