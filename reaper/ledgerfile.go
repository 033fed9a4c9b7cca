package reaper

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// ledgerVersion is the format that Encode writes and Decode reads.
const ledgerVersion = 1

// lastSecond is the last second that RFC 3339 can write, in seconds since 1970. Much
// later times overflow and become times in the past.
const lastSecond = 253_402_300_799

// A ledgerFile is the stored form: times in seconds since 1970, and hashes by the node
// on which their pods were last seen.
type ledgerFile struct {
	Version int                 `json:"version"`
	Seen    map[string]int64    `json:"seen"`
	Nodes   map[string][]string `json:"nodes,omitempty"`
	Figures figures             `json:"figures,omitzero"`
}

// Encode returns the stored form. Equal ledgers have equal forms.
func (l Ledger) Encode() []byte {
	file := ledgerFile{
		Version: ledgerVersion, Seen: make(map[string]int64, len(l.seen)),
		Nodes: make(map[string][]string), Figures: l.figures,
	}
	for id, at := range l.seen {
		file.Seen[id] = at.Unix()
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
	if file.Figures.Pods < 0 || file.Figures.Nodes < 0 {
		return Ledger{}, fmt.Errorf("%w: its figures are %+v", ErrLedgerDamaged, file.Figures)
	}
	l := Ledger{seen: make(map[string]time.Time, len(file.Seen)), nodes: make(map[string]string), figures: file.Figures}
	for id, at := range file.Seen {
		if at < 0 || at > lastSecond {
			return Ledger{}, fmt.Errorf("%w: %d is not a time", ErrLedgerDamaged, at)
		}
		l.seen[id] = time.Unix(at, 0).UTC()
	}
	for node, ids := range file.Nodes {
		for _, id := range ids {
			l.nodes[id] = node
		}
	}
	return l, nil
}
