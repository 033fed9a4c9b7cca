package ledger

import (
	"slices"
	"time"
)

// A Use says how many addresses networks had at a time, for people: no verdict rests on it.
type Use struct {
	At   int64          `json:"at"`   // in seconds since 1970
	Used map[string]int `json:"used"` // by the backend and the name of the network
}

const (
	// MaxUsed is how many networks a Use has. With names of a usual length, all uses take less than 32 KiB; a full ledger has none.
	MaxUsed = 100

	// maxUses uses that are betweenUses apart tell of a day.
	maxUses     = 4
	betweenUses = 6 * time.Hour
)

// WithUse returns the ledger with a use, in place of one that is not earlier, and without the oldest beyond a day's. If
// the last use is too near, it stays as it is.
func (l Ledger) WithUse(u Use) Ledger {
	last := len(l.Uses) - 1
	switch {
	case last >= 0 && l.Uses[last].At >= u.At: // the clock may have been set back
		l.Uses = append(slices.Clone(l.Uses[:last]), u)
	case last < 0 || u.At-l.Uses[last].At >= int64(betweenUses/time.Second):
		l.Uses = append(slices.Clone(l.Uses[max(0, len(l.Uses)+1-maxUses):]), u)
	}
	return l
}
