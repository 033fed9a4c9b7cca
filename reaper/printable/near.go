package printable

import (
	"net/netip"
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

// dashes writes names as Kubernetes names objects after them: those of ranges have dashes.
var dashes = strings.NewReplacer(".", "-", ":", "-", "/", "-")

// Near returns the names nearest to a mistyped one, sorted, at most three: those that it is another
// form of, or else those that the fewest edits lead to, or else those that begin with it. Letter case
// does not count. Another form lacks the namespace, has other signs, or is an address or a CIDR inside.
// A name may differ by one edit for every three letters, and by at most three.
func Near(typed string, names []string) []string {
	typed = strings.ToLower(typed)
	address, _, _ := strings.Cut(typed, "/")
	ip, _ := netip.ParseAddr(address)
	dashed := dashes.Replace(typed)
	most := min(3, max(1, len(typed)/3))
	var forms, near, begun []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		lower := strings.ToLower(name)
		around, err := netip.ParsePrefix(lower)
		inNamespace := err != nil && dashes.Replace(lower[strings.LastIndexByte(lower, '/')+1:]) == dashed
		if inNamespace || around.Contains(ip) || dashes.Replace(lower) == dashed {
			forms = append(forms, name)
		}
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
	for _, found := range [][]string{forms, near, begun} {
		if len(found) > 0 {
			return found[:min(len(found), maxMeant)]
		}
	}
	return nil
}

// edits returns how many bytes must be inserted, deleted, replaced or swapped with the next one to
// get from a to b: the optimal string alignment distance.
func edits(a, b string) int {
	rows := make([][]int, len(a)+1) // from each part of a to each part of b
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			n := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				n = min(n, rows[i-1][j], rows[i][j-1]) + 1
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				n = min(n, rows[i-2][j-2]+1)
			}
			rows[i][j] = n
		}
	}
	return rows[len(a)][len(b)]
}
