package proxy

import (
	"fmt"
	"slices"
	"strings"
)

// A Point is a moment in the life of a process: before its Nth write is
// forwarded, or after the API server has answered that write and before the
// process receives the answer.
type Point struct {
	After bool
	N     int    // counted from 1
	Write string // as Writes names it
}

// String names the point, for subtests.
func (p Point) String() string {
	if p.After {
		return fmt.Sprint("after ", p.N, " ", p.Write)
	}
	return fmt.Sprint("before ", p.N, " ", p.Write)
}

// Kind returns the verb and the resource of the write, such as "patch ippools".
func (p Point) Kind() string {
	verb, rest, _ := strings.Cut(p.Write, " ")
	resource, _, _ := strings.Cut(rest, " ")
	return verb + " " + resource
}

// Writes names the writes that went through the proxy, in order: verb, resource and the beginning
// of the object's name.
func Writes(p *Proxy) []string {
	var writes []string
	for _, r := range p.Requests() {
		if r.Mutating() {
			writes = append(writes, strings.TrimSpace(fmt.Sprintf("%s %.30s", r, r.Name)))
		}
	}
	return writes
}

// Points returns the points before and after each write. Of three or more writes in a row with the
// same name, only the first and the last count.
func Points(writes []string) []Point {
	var all []Point
	for i, write := range writes {
		if i > 0 && i < len(writes)-1 && writes[i-1] == write && writes[i+1] == write {
			continue
		}
		all = append(all, Point{false, i + 1, write}, Point{true, i + 1, write})
	}
	return all
}

// Own lists the resources that a run writes for itself: lock, ledger and journal.
var Own = []string{"leases", "configmaps"}

// Changing returns the points at which the stores have changed: each is another state that a crash
// can leave them in.
func Changing(points []Point) []Point {
	return slices.DeleteFunc(slices.Clone(points), func(p Point) bool {
		_, resource, _ := strings.Cut(p.Kind(), " ")
		return !p.After || slices.Contains(Own, resource)
	})
}
