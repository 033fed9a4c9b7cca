package print

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// tops are what leaks can be counted by: the value of --top, the heading, and the row in which
// the address of an entry counts, which is empty if that is not known.
var tops = []struct {
	by, heading string
	row         func(e report.Entry, now time.Time) string
}{
	{"nodes", "NODE", func(e report.Entry, _ time.Time) string { return e.Owner.Node }},
	{"namespaces", "NAMESPACE", func(e report.Entry, _ time.Time) string { return e.Owner.Namespace }},
	{"owners", "OWNER", func(e report.Entry, _ time.Time) string {
		if e.Owner.Pod == "" {
			return ""
		}
		return strings.Trim(e.Owner.Namespace+"/"+workloadOf(e.Owner.Pod), "/")
	}},
	{"ages", "AGE", ageOf},
}

// Tops returns what WritePools can count leaks by.
func Tops() []string {
	var names []string
	for _, t := range tops {
		names = append(names, t.by)
	}
	return names
}

// A ranking counts the leaked addresses by something.
type ranking struct {
	By   string      `json:"by"`
	Rows []rankedRow `json:"rows"` // the most leaks first; ages in their order

	// Known is false if the pods could not be listed: then there are no rows.
	Known bool `json:"known"`

	heading string
}

// A rankedRow counts the leaks of one node, namespace, owner or age. Leaked is the sum of
// the others.
type rankedRow struct {
	Name    string `json:"name"`
	Leaked  int    `json:"leaked"`
	Due     int    `json:"due"`
	Waiting int    `json:"waiting"`
	Held    int    `json:"held"`
}

// nameless is the row of leaks whose node, namespace or owner the store does not name.
const nameless = "(unknown)"

// rank counts the leaks that the stores still have.
func rank(r report.Report, by string) ranking {
	top := tops[slices.Index(Tops(), by)]
	counts := r.LeakedBy(func(e report.Entry) string { return top.row(e, r.Run.StartedAt) })
	found := ranking{By: by, Known: r.Leaked != nil, Rows: []rankedRow{}, heading: top.heading}
	for name, n := range counts {
		if left := n.Total - n.Released; left > 0 {
			found.Rows = append(found.Rows, rankedRow{cmp.Or(name, nameless), left, n.Due, n.Waiting, n.Held})
		}
	}
	slices.SortFunc(found.Rows, func(a, b rankedRow) int {
		if by == "ages" {
			return cmp.Compare(ageOrder(a.Name), ageOrder(b.Name))
		}
		return cmp.Or(cmp.Compare(b.Leaked, a.Leaked), strings.Compare(a.Name, b.Name))
	})
	return found
}

// podName matches the names that controllers give to pods: of a Deployment, a CronJob, a
// DaemonSet or Job, and a StatefulSet. A random part has no vowels and not all digits
// (rand.SafeEncodeString in k8s.io/apimachinery).
var podName = regexp.MustCompile(`^(.+?)(?:(?:-(?:[bcdfghjklmnpqrstvwxz2456789]{6,10}|[0-9]{8,}))?-[bcdfghjklmnpqrstvwxz2456789]{5}|-[0-9]+)$`)

// workloadOf guesses the workload of a pod from its name: web for web-0, web-x2x9z and
// web-7d4b9c6f5d-x2x9z. The pod is gone, so its owner cannot be read.
func workloadOf(pod string) string {
	if m := podName.FindStringSubmatch(pod); m != nil {
		return m[1]
	}
	return pod
}

// ages are the rows by age, and their lower bounds.
var ages = []struct {
	name string
	from time.Duration
}{
	{"less than 1 hour", 0},
	{"1 hour to 1 day", time.Hour},
	{"1 to 7 days", 24 * time.Hour},
	{"7 to 30 days", 7 * 24 * time.Hour},
	{"30 days and more", 30 * 24 * time.Hour},
}

// ageOf returns how old a leak is: since an earlier run first saw it without an owner, or
// else since it was allocated. It returns an empty string if neither is known.
func ageOf(e report.Entry, now time.Time) string {
	var since time.Time
	switch {
	case e.FirstSeen != nil && e.FirstSeen.Before(now):
		since = *e.FirstSeen
	case e.Created != nil:
		since = *e.Created
	default:
		return ""
	}
	name := ages[0].name
	for _, a := range ages {
		if now.Sub(since) >= a.from {
			name = a.name
		}
	}
	return name
}

// ageOrder returns the place of a row by age. What is unknown comes last.
func ageOrder(name string) int {
	for i, a := range ages {
		if a.name == name {
			return i
		}
	}
	return len(ages)
}

// table returns the ranking for people.
func (r ranking) table(limit int) table {
	t := table{heading: []string{r.heading, "LEAKED", "DUE", "WAITING", "HELD"}}
	switch {
	case !r.Known:
		t.say("unknown: could not tell what is leaked")
		return t
	case len(r.Rows) == 0:
		t.say("nothing is leaked")
		return t
	}
	left := 0
	for i, row := range r.Rows {
		if i >= limit {
			left += row.Leaked
			continue
		}
		t.rows = append(t.rows, []string{row.Name, printable.Thousands(row.Leaked), printable.Thousands(row.Due), printable.Thousands(row.Waiting), printable.Thousands(row.Held)})
	}
	if more := len(r.Rows) - limit; more > 0 {
		t.say("… and %s more with %s: --limit shows more", printable.Thousands(more), printable.Thousands(left))
	}
	switch r.By {
	case "owners":
		t.say("owners are guessed from pod names: web-0 and web-7d4b9c6f5d-x2x9z belong to web")
	case "ages":
		t.say("ages count from the run that first saw the leak, or else from the allocation")
	}
	return t
}
