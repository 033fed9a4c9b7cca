package printable

import (
	"slices"
	"strings"
)

// maxMeant is the most names that Near returns.
const maxMeant = 3

// Meant asks for the names that a mistyped one may stand for: "did you mean a or b?". It is
// empty if no name is near.
func Meant(typed string, names []string) string {
	if near := Near(typed, names); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

// Near returns the names nearest to a mistyped one, sorted, at most three: those that the fewest
// edits lead to, or else those that begin with it. Letter case does not count. A name may differ
// by one edit for every three letters, and by at most three.
func Near(typed string, names []string) []string {
	typed = strings.ToLower(typed)
	most := min(3, max(1, len(typed)/3))
	var near, begun []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		lower := strings.ToLower(name)
		if typed != "" && strings.HasPrefix(lower, typed) {
			begun = append(begun, name)
		}
		if max(len(typed)-len(lower), len(lower)-len(typed)) > most {
			continue // a text of any length costs no more than a name
		}
		switch n := edits(typed, lower); {
		case n < most:
			near, most = []string{name}, n
		case n == most:
			near = append(near, name)
		}
	}
	if len(near) == 0 {
		near = begun
	}
	return near[:min(len(near), maxMeant)]
}

// edits returns how many bytes must be inserted, deleted or replaced to get from a to b: the
// Levenshtein distance.
func edits(a, b string) int {
	row := make([]int, len(b)+1) // from the read part of a to each part of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0] // from less of a, to less of b
		row[0] = i + 1
		for j := range len(b) {
			replace := before
			if a[i] != b[j] {
				replace++
			}
			before = row[j+1]
			row[j+1] = min(replace, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}
