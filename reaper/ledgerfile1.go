package reaper

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// A ledgerFile1 is version 1 of the stored form: times in seconds since 1970, graces in
// seconds, and keys by the node on which their pods were last seen.
type ledgerFile1 struct {
	Version  int                 `json:"version"`
	Seen     map[string]int64    `json:"seen"`
	Nodes    map[string][]string `json:"nodes,omitempty"`
	Graces   map[string]int64    `json:"graces,omitempty"`
	Restored map[string]int64    `json:"restored,omitempty"`
	Figures  figures             `json:"figures,omitzero"`
	Doubt    doubt               `json:"doubt,omitzero"`
}

// decodeLedger1 reads version 1. It leaves out keys that no allocation can have.
func decodeLedger1(data []byte) (Ledger, error) {
	var file ledgerFile1
	if err := json.Unmarshal(data, &file); err != nil {
		return Ledger{}, err
	}
	if file.Version != 1 {
		return Ledger{}, fmt.Errorf("JSON of version %d, this program reads version 1", file.Version)
	}
	if f, d := file.Figures, file.Doubt; min(f.Pods, f.Nodes, d.Pods, d.Nodes) < 0 || d.At < 0 || d.At > lastSecond {
		return Ledger{}, fmt.Errorf("its figures are %+v and %+v", f, d)
	}
	b := newLedgerBuilder(Ledger{figures: file.Figures, doubt: file.Doubt})
	for _, times := range []struct {
		stored map[string]int64
		into   *ledgerTable[int64]
	}{{file.Seen, &b.seen}, {file.Restored, &b.restored}} {
		for id, at := range times.stored {
			if at < 0 || at > lastSecond {
				return Ledger{}, fmt.Errorf("%d is not a time", at)
			}
			if k, ok := keyOf1(id); ok {
				times.into.add(k, at)
			}
		}
	}
	for id, seconds := range file.Graces {
		if seconds < 0 || seconds > maxGrace {
			return Ledger{}, fmt.Errorf("%d is not a grace in seconds", seconds)
		}
		if k, ok := keyOf1(id); ok {
			b.graces.add(k, int32(seconds))
		}
	}
	for node, ids := range file.Nodes {
		for _, id := range ids {
			if k, ok := keyOf1(id); ok {
				b.addNode(k, node)
			}
		}
	}
	return b.ledger(), nil
}

// keyOf1 reads a key of version 1: the tag and the hash in base64.
func keyOf1(id string) (k ledgerKey, ok bool) {
	data, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil || len(data) != len(k) {
		return k, false
	}
	copy(k[:], data[tagSize:])
	copy(k[hashSize:], data)
	return k, true
}
