package storm

import (
	"fmt"
	"strings"
	"time"
)

// A Tally is the result of a storm.
type Tally struct {
	Adds, Full, Dels, Crashes, Comebacks int
	Refused                              []string // ADDs and DELs that failed otherwise, in the plugin's words

	Runs, Released int // of the reaper

	Checked int // sandboxes, in all checks
	Left    int // facts without an owner after the last run

	Excused    []string // what the plugin alone lost, and addresses that it consequently gave twice
	Violations []string
}

// judge separates the findings that are the plugin's own doing from all others. Two sandboxes with
// one address, in different ranges, are the plugin's doing if it lost the first one's reservation,
// or if the second forgot to make one, which would have collided with the first one's.
func (s *storm) judge() {
	t := &s.tally
	t.Checked = s.roster.checked
	for _, f := range s.roster.all() {
		text := f.String()
		if f.of == nil {
			t.Violations = append(t.Violations, text)
			continue
		}
		cause := f
		if f.shared != nil && f.shared.place != f.of.place {
			cause.what = fact{kindReservation, f.of.ip.String()}
		}
		why := s.ipam.lost(cause, s.released)
		if why == "" && f.shared != nil && f.shared.place != f.of.place && f.shared.unreserved {
			why = "the ADD of the second forgot to reserve"
		}
		if why != "" {
			t.Excused = append(t.Excused, text+": "+why)
			continue
		}
		t.Violations = append(t.Violations, text+s.beside(f))
	}
	if t.Left > 0 {
		t.Violations = append(t.Violations, fmt.Sprintf("%d left after the last run", t.Left))
	}
}

// beside returns which releases of the sandbox's address runs of the reaper reported between its
// ADD and the finding.
func (s *storm) beside(f finding) string {
	var text strings.Builder
	for _, r := range s.released {
		if r.ip == f.of.ip.String() && r.ended.After(f.of.began) && r.began.Before(f.at) {
			fmt.Fprintf(&text, "\n    a run from %s to %s reported the release of %s %s", clock(r.began), clock(r.ended), r.backend, r.ip)
		}
	}
	return text.String()
}

// String says what happened, and when.
func (f finding) String() string {
	if f.of == nil {
		return clock(f.at) + " " + f.broken
	}
	who := fmt.Sprintf("%s %s has %s by its ADD from %s to %s", clock(f.at), f.of, f.of.ip, clock(f.of.began), clock(f.of.answered))
	if f.shared != nil {
		return fmt.Sprintf("%s, and %s was given it by an ADD from %s to %s",
			who, f.shared, clock(f.shared.began), clock(f.shared.answered))
	}
	had := "does not exist"
	if f.had != "" {
		had = fmt.Sprintf("is of %q", f.had)
	}
	return fmt.Sprintf("%s; the %s %s %s, want %q", who, f.what.kind, f.what.name, had, f.want)
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }
