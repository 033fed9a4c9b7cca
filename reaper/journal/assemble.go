package journal

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A StoredPart is what was found in one place of a journal: a part, or why there
// is none.
type StoredPart struct {
	Name string // of the place, for people
	Part Part
	Err  error // of DecodePart
}

// maxDamage is how many damages are told one by one.
const maxDamage = 20

// Assemble puts the parts of a run's journal together, in whatever order
// they come. What is missing, damaged, of another run or there twice is told by an
// error that wraps reaper.ErrJournalDamaged and names it, and comes with all that can be
// read. The last writes leave no trace when all parts of them are gone.
func Assemble(runID string, stored []StoredPart) (reaper.Journal, error) {
	a := assembly{journal: reaper.Journal{Run: reaper.JournalRun{ID: runID}}}
	parts := a.unique(a.ofRun(stored))
	for i, s := range parts {
		a.journal.Records = append(a.journal.Records, s.Part.Records...)
		if i == 0 || parts[i-1].Part.Write != s.Part.Write {
			a.journal.Writes = append(a.journal.Writes, 0)
		}
		a.journal.Writes[len(a.journal.Writes)-1] += len(s.Part.Records)
	}
	a.findGaps(parts)
	if more := len(a.damage) - maxDamage; more > 0 {
		a.damage = a.damage[:maxDamage]
		a.tell("%d more of that", more)
	}
	return a.journal, errors.Join(a.damage...)
}

// An assembly is a journal that is being put together.
type assembly struct {
	journal reaper.Journal
	damage  []error
}

func (a *assembly) tell(format string, args ...any) {
	a.damage = append(a.damage, fmt.Errorf("%w: %s", reaper.ErrJournalDamaged, fmt.Sprintf(format, args...)))
}

// ofRun returns the parts that are of the run, and takes from the first what is
// known of it.
func (a *assembly) ofRun(stored []StoredPart) []StoredPart {
	var parts []StoredPart
	for _, s := range stored {
		switch {
		case s.Err != nil:
			a.damage = append(a.damage, fmt.Errorf("%s: %w", s.Name, s.Err))
		case s.Part.Run.ID != a.journal.Run.ID:
			a.tell("%s is of the run %q", s.Name, s.Part.Run.ID)
		case len(parts) > 0 && !s.Part.Run.Equal(a.journal.Run):
			a.tell("%s tells something else of the run than %s", s.Name, parts[0].Name)
		default:
			a.journal.Run = s.Part.Run
			parts = append(parts, s)
		}
	}
	return parts
}

// unique sorts the parts and returns each once; none of two that claim the same
// place and differ.
func (a *assembly) unique(parts []StoredPart) []StoredPart {
	place := func(s, other StoredPart) int {
		return cmp.Or(cmp.Compare(s.Part.Write, other.Part.Write), cmp.Compare(s.Part.Part, other.Part.Part))
	}
	slices.SortStableFunc(parts, place)
	var once []StoredPart
	for len(parts) > 0 {
		first, n := parts[0], 1
		alike := true
		for ; n < len(parts) && place(first, parts[n]) == 0; n++ {
			a.tell("%s and %s are both part %d of write %d", first.Name, parts[n].Name, first.Part.Part, first.Part.Write)
			alike = alike && reflect.DeepEqual(first.Part, parts[n].Part)
		}
		if alike {
			once = append(once, first)
		}
		parts = parts[n:]
	}
	return once
}

// findGaps tells what is missing among the parts, which are sorted.
func (a *assembly) findGaps(parts []StoredPart) {
	have, last := make(map[int][]int), make(map[int]int)
	for _, s := range parts {
		write := s.Part.Write
		if last[write] > 0 && last[write] != s.Part.Parts {
			a.tell("%s is of %d parts, others of write %d are of %d", s.Name, s.Part.Parts, write, last[write])
		}
		have[write] = append(have[write], s.Part.Part)
		last[write] = max(last[write], s.Part.Parts)
	}
	writes := slices.Sorted(maps.Keys(have))
	for _, write := range writes {
		if lost := gaps(have[write], last[write]); lost != "" {
			a.tell("write %d lacks part %s of %d", write, lost, last[write])
		}
	}
	if n := len(writes); n > 0 {
		if lost := gaps(writes, writes[n-1]); lost != "" {
			a.tell("write %s is missing", lost)
		}
	}
}

// gaps names what is missing from 1 to last in numbers that ascend, such as
// "1, 4-6".
func gaps(have []int, last int) string {
	var lost []string
	next := 1
	for _, n := range slices.Concat(have, []int{last + 1}) {
		switch n - next {
		case 0:
		case 1:
			lost = append(lost, fmt.Sprint(next))
		default:
			lost = append(lost, fmt.Sprintf("%d-%d", next, n-1))
		}
		next = n + 1
	}
	return strings.Join(lost, ", ")
}
