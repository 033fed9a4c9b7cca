package storm

import (
	"fmt"
	"strings"
	"time"
)

// A tally is what a storm came to.
type tally struct {
	adds, full, dels, crashes, comebacks int
	refused                              []string // ADDs and DELs that failed otherwise, in the plugin's words

	runs, released int // of the reaper
	exits          map[int]int
	complaints     []string // of runs that did not exit with 0

	checked int // sandboxes, in all looks of the checker
	left    int // facts without an owner after the last run

	excused    []string // what the plugin alone lost, and addresses that it therefore gave twice
	violations []string
}

// judge tells the findings that are the plugin's own doing from all others.
// That two have an address, in different ranges, is, if the first of them lost its
// reservation so, or if the second forgot to make one, in which it would have met
// that of the first.
func (s *storm) judge() {
	t := &s.tally
	t.checked = s.roster.checked
	for _, f := range s.roster.all() {
		text := f.String()
		if f.of == nil {
			t.violations = append(t.violations, text)
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
			t.excused = append(t.excused, text+": "+why)
			continue
		}
		t.violations = append(t.violations, text+s.beside(f))
	}
	if s.clean != nil && t.left > 0 {
		t.violations = append(t.violations, fmt.Sprintf("%d left after the last run", t.left))
	}
}

// beside is what runs of the reaper reported to have released of the sandbox's
// address between its ADD and the finding.
func (s *storm) beside(f finding) string {
	var text strings.Builder
	for _, r := range s.released {
		if r.ip == f.of.ip.String() && r.ended.After(f.of.began) && r.began.Before(f.at) {
			fmt.Fprintf(&text, "\n    a run from %s to %s reported the release of %s %s", clock(r.began), clock(r.ended), r.backend, r.ip)
		}
	}
	return text.String()
}

// String tells what happened, and when.
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
