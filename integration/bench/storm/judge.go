package main

import (
	"fmt"
	"strings"
	"time"
)

// A tally is what a storm came to.
type tally struct {
	adds, full, dels, lateDels, crashes, comebacks int
	refused                                        []string // ADDs and DELs that failed otherwise, in the plugin's words

	runs, released int // of the reaper
	exits          map[int]int
	complaints     []string // of runs that did not exit with 0

	looks, checked int // of the checker: its looks, and the sandboxes in them
	retiring       int // reservations of a pod that is there, seen under a tombstone
	living         int // pods at the end

	leaked, left map[string]int // facts by kind: without an owner when the storm was over, and after the last run

	wall time.Duration

	forgotten  []string // what the plugin alone lost
	shared     []string // addresses that it therefore gave twice
	violations []string
}

// judge tells the findings that are the plugin's own doing from all others.
// That two have an address, in different ranges, is, if the first of them lost its
// reservation so, or if the second forgot to make one, in which it would have met
// that of the first.
func (s *storm) judge() {
	t := &s.tally
	t.looks, t.checked, t.retiring = s.roster.looks, s.roster.checked, len(s.roster.retiring)
	for _, f := range s.roster.all() {
		text := f.String()
		if f.of == nil {
			t.violations = append(t.violations, text)
			continue
		}
		cause, list := f, &t.forgotten
		if f.shared != nil {
			list = &t.shared
			if f.shared.place != f.of.place {
				cause.what = fact{kindReservation, f.of.ip.String()}
			}
		}
		why := s.ipam.lost(cause, s.released)
		if why == "" && f.shared != nil && f.shared.place != f.of.place && f.shared.unreserved {
			why = "the ADD of the second forgot to reserve"
		}
		if why != "" {
			*list = append(*list, text+": "+why)
			continue
		}
		t.violations = append(t.violations, text+s.beside(f))
	}
	for kind, n := range t.left {
		if s.clean != nil && n > 0 && kind != kindHandle {
			t.violations = append(t.violations, fmt.Sprintf("%d of %s left after the last run", n, kind))
		}
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
