package journal

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A Printed is a journal as history prints it in JSON, from which Read reads it again.
type Printed struct {
	Parts  []Part   `json:"parts"`            // one for each write, of any size
	Damage []string `json:"damage,omitempty"` // why other parts could not be read
}

// printed returns a journal to print.
func printed(j Journal) *Printed {
	p := &Printed{Parts: []Part{}}
	for left := j.Records; len(left) > 0; {
		size := len(left)
		if n := len(p.Parts); n < len(j.Writes) {
			size = j.Writes[n]
		}
		p.Parts = append(p.Parts, Part{Run: j.Run, Write: len(p.Parts) + 1, Part: 1, Parts: 1, Records: left[:size]})
		left = left[size:]
	}
	return p
}

// maxPrinted is the largest size of a printed journal, in bytes. It is held in memory.
const maxPrinted = 1 << 30

// Read reads the journal in the history of one run, as printed in JSON. The name is for messages.
// It returns the errors of Assemble, and an *ipam.InputError if there is no journal to read.
func Read(name string, text io.Reader) (Journal, error) {
	data, err := io.ReadAll(io.LimitReader(text, maxPrinted+1))
	if err != nil {
		return Journal{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxPrinted {
		return Journal{}, ipam.BadInput(fmt.Errorf("%s has more than %d MiB", name, maxPrinted>>20), "restore the run from its state, with --run")
	}
	var history struct {
		Runs []struct {
			ID      string `json:"id"`
			Journal struct {
				Parts  []json.RawMessage `json:"parts"`
				Damage []string          `json:"damage"`
			} `json:"journal"`
		} `json:"runs"`
	}
	const hint = "give what history --run ID -o json has printed"
	if err := decodeJSON(data, &history); err != nil {
		return Journal{}, ipam.BadInput(fmt.Errorf("%s: %w", name, err), hint)
	}
	if len(history.Runs) != 1 || !IsRunID(history.Runs[0].ID) {
		return Journal{}, ipam.BadInput(fmt.Errorf("%s: it is not the history of one run", name), hint)
	}
	run := history.Runs[0]
	var stored []StoredPart
	for i, data := range run.Journal.Parts {
		part, err := decodePart(data)
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		stored = append(stored, StoredPart{Name: fmt.Sprintf("%s, part %d", name, i+1), Part: part, Err: err})
	}
	for _, said := range run.Journal.Damage {
		stored = append(stored, StoredPart{Name: name, Err: fmt.Errorf("%w; history said: %s", ErrDamaged, said)})
	}
	if len(stored) == 0 {
		return Journal{}, ipam.BadInput(fmt.Errorf("%s: %w of run %s", name, ErrNone, run.ID), hint)
	}
	return Assemble(run.ID, stored)
}
