package reaper

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"
)

// ledgerVersion is the format that Encode writes and Decode reads.
const ledgerVersion = 1

// latest is the last second that has a form in RFC 3339, in seconds since 1970.
// Later ones wrap around to the past somewhere.
const latest = 253_402_300_799

// A Ledger remembers since when reservations have been ownerless without a
// break. It is what a program that runs every few minutes has for a memory. A
// lost or damaged ledger only restarts grace periods. The zero Ledger is empty;
// a Ledger is a value and never changes.
type Ledger struct {
	seen map[string]time.Time
}

// Ledgers keeps the ledger between runs.
type Ledgers interface {
	// Load returns the stored ledger; an empty one where there is none. An
	// error that wraps ErrLedgerDamaged comes with what could be saved of it.
	Load(ctx context.Context) (Ledger, error)

	// Save replaces what Load returned. It returns an error that wraps
	// ErrAgain when somebody else wrote in between.
	Save(ctx context.Context, l Ledger) error
}

// ErrLedgerDamaged says that a stored ledger, or a part of it, could not be
// understood. What it remembered counts as first seen now.
var ErrLedgerDamaged = errors.New("the ledger is damaged")

// since returns when the identity was first seen ownerless: now where the
// ledger does not know it, or claims a time to come.
func (l Ledger) since(id string, now time.Time) time.Time {
	if at, ok := l.seen[hash(id)]; ok && at.Before(now) {
		return at
	}
	return now
}

// next returns the ledger that the verdicts call for: what is ownerless now and
// has to wait, and nothing else. Times are rounded up to the second of the
// stored form, so that no grace period is cut short.
func next(verdicts []Verdict) Ledger {
	l := Ledger{seen: make(map[string]time.Time)}
	for _, v := range verdicts {
		if v.remember {
			l.seen[hash(v.Reservation.id())] = v.FirstSeen.Add(time.Second - 1).Truncate(time.Second)
		}
	}
	return l
}

// Equal reports whether both remember the same.
func (l Ledger) Equal(other Ledger) bool {
	return maps.EqualFunc(l.seen, other.seen, time.Time.Equal)
}

// Len returns the number of reservations that it remembers.
func (l Ledger) Len() int { return len(l.seen) }

// Shards splits the ledger into the fewest parts of at most size entries. There
// is always at least one.
func (l Ledger) Shards(size int) []Ledger {
	shards := []Ledger{{seen: make(map[string]time.Time)}}
	for id, at := range l.seen {
		last := len(shards) - 1
		if len(shards[last].seen) == size {
			shards = append(shards, Ledger{seen: make(map[string]time.Time)})
			last++
		}
		shards[last].seen[id] = at
	}
	return shards
}

// Merge returns what both remember; where both do, the later time counts.
func (l Ledger) Merge(other Ledger) Ledger {
	merged := Ledger{seen: maps.Clone(l.seen)}
	if merged.seen == nil {
		merged.seen = make(map[string]time.Time)
	}
	for id, at := range other.seen {
		if have, ok := merged.seen[id]; !ok || at.After(have) {
			merged.seen[id] = at
		}
	}
	return merged
}

// A ledgerFile is the stored form: times in seconds since 1970.
type ledgerFile struct {
	Version int              `json:"version"`
	Seen    map[string]int64 `json:"seen"`
}

// Encode returns the stored form. Equal ledgers have equal forms.
func (l Ledger) Encode() []byte {
	file := ledgerFile{Version: ledgerVersion, Seen: make(map[string]int64, len(l.seen))}
	for id, at := range l.seen {
		file.Seen[id] = at.Unix()
	}
	data, err := json.Marshal(file)
	if err != nil {
		return nil // a map of strings to numbers always marshals
	}
	return data
}

// DecodeLedger reads what Encode wrote. It returns an error that wraps
// ErrLedgerDamaged for anything else, what a newer version wrote included.
func DecodeLedger(data []byte) (Ledger, error) {
	var file ledgerFile
	if err := json.Unmarshal(data, &file); err != nil {
		return Ledger{}, fmt.Errorf("%w: %w", ErrLedgerDamaged, err)
	}
	if file.Version != ledgerVersion {
		return Ledger{}, fmt.Errorf("%w: version %d, this program reads %d", ErrLedgerDamaged, file.Version, ledgerVersion)
	}
	l := Ledger{seen: make(map[string]time.Time, len(file.Seen))}
	for id, at := range file.Seen {
		if at < 0 || at > latest {
			return Ledger{}, fmt.Errorf("%w: %d is not a time", ErrLedgerDamaged, at)
		}
		l.seen[id] = time.Unix(at, 0).UTC()
	}
	return l, nil
}

// hash shortens an identity: tokens can be as large as the entry itself. 128
// bits keep two entries of one cluster apart.
func hash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
