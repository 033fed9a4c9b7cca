package reaper

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// ledgerVersion is the format that Encode writes and Decode reads.
const ledgerVersion = 1

// lastSecond is the last second that RFC 3339 can write, in seconds since 1970. Much
// later times overflow and become times in the past.
const lastSecond = 253_402_300_799

// maxGrace is the largest grace that is remembered, in seconds: about 68 years.
const maxGrace = math.MaxInt32

// A ledgerFile is the stored form: times in seconds since 1970, graces in seconds, and
// keys by the node on which their pods were last seen.
type ledgerFile struct {
	Version  int                 `json:"version"`
	Seen     map[string]int64    `json:"seen"`
	Nodes    map[string][]string `json:"nodes,omitempty"`
	Graces   map[string]int64    `json:"graces,omitempty"`
	Restored map[string]int64    `json:"restored,omitempty"`
	Figures  figures             `json:"figures,omitzero"`
	Doubt    doubt               `json:"doubt,omitzero"`
}

// Encode returns the stored form. Equal ledgers have equal forms.
func (l Ledger) Encode() []byte {
	file := ledgerFile{
		Version: ledgerVersion, Seen: make(map[string]int64, len(l.seen)),
		Nodes: make(map[string][]string), Graces: make(map[string]int64, len(l.graces)),
		Restored: make(map[string]int64, len(l.restored)), Figures: l.figures, Doubt: l.doubt,
	}
	for id, at := range l.seen {
		file.Seen[id] = at.Unix()
	}
	for id, at := range l.restored {
		file.Restored[id] = at.Unix()
	}
	for id, grace := range l.graces {
		file.Graces[id] = int64(grace / time.Second)
	}
	for id, node := range l.nodes {
		file.Nodes[node] = append(file.Nodes[node], id)
	}
	for _, ids := range file.Nodes {
		slices.Sort(ids)
	}
	data, err := json.Marshal(file)
	if err != nil {
		return nil // maps of strings, numbers and lists always marshal
	}
	return data
}

// DecodeLedger reads the form that Encode returns. For any other data, also for that of
// another version of the form, the error wraps ErrLedgerDamaged.
func DecodeLedger(data []byte) (Ledger, error) {
	var file ledgerFile
	if err := json.Unmarshal(data, &file); err != nil {
		return Ledger{}, fmt.Errorf("%w: %w", ErrLedgerDamaged, err)
	}
	if file.Version != ledgerVersion {
		return Ledger{}, fmt.Errorf("%w: version %d, this program reads %d", ErrLedgerDamaged, file.Version, ledgerVersion)
	}
	if f, d := file.Figures, file.Doubt; min(f.Pods, f.Nodes, d.Pods, d.Nodes) < 0 || d.At < 0 || d.At > lastSecond {
		return Ledger{}, fmt.Errorf("%w: its figures are %+v and %+v", ErrLedgerDamaged, f, d)
	}
	l := newLedger()
	l.figures, l.doubt = file.Figures, file.Doubt
	for _, times := range []struct {
		stored map[string]int64
		into   map[string]time.Time
	}{{file.Seen, l.seen}, {file.Restored, l.restored}} {
		for id, at := range times.stored {
			if at < 0 || at > lastSecond {
				return Ledger{}, fmt.Errorf("%w: %d is not a time", ErrLedgerDamaged, at)
			}
			times.into[id] = time.Unix(at, 0).UTC()
		}
	}
	for id, seconds := range file.Graces {
		if seconds < 0 || seconds > maxGrace {
			return Ledger{}, fmt.Errorf("%w: %d is not a grace in seconds", ErrLedgerDamaged, seconds)
		}
		l.graces[id] = time.Duration(seconds) * time.Second
	}
	for node, ids := range file.Nodes {
		for _, id := range ids {
			l.nodes[id] = node
		}
	}
	return l, nil
}
