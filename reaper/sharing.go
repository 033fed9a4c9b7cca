package reaper

// A sharing keeps equal parts of decisions once. Almost all allocations of a cluster are in
// use for one of a few reasons, on one of some thousand nodes. It is for one goroutine.
type sharing struct {
	rulings map[plainRuling]*Ruling
	known   map[knowledge]*knowledge
	located Allocation // the one that is decided
}

// A plainRuling has all that tells two plain rulings apart.
type plainRuling struct {
	rule     int
	evidence Evidence
}

func newSharing() *sharing {
	return &sharing{rulings: make(map[plainRuling]*Ruling), known: make(map[knowledge]*knowledge)}
}

// plain reports whether the allocation is in use, and no more than one source says so. A
// report has nothing to say of it.
func (r *Ruling) plain() bool {
	return r.Verdict == InUse && r.Note == "" && r.ChangedBy == "" && len(r.Evidence) == 1
}

// ruling returns a ruling that is equal to this one. Only plain ones are shared.
func (s *sharing) ruling(r Ruling) *Ruling {
	if !r.plain() {
		own := r // only what is kept costs memory
		return &own
	}
	key := plainRuling{r.Rule, r.Evidence[0]}
	if have := s.rulings[key]; have != nil {
		return have
	}
	own := r
	s.rulings[key] = &own
	return &own
}

// knowledge returns the same knowledge.
func (s *sharing) knowledge(k knowledge) *knowledge {
	if have := s.known[k]; have != nil {
		return have
	}
	own := k
	s.known[k] = &own
	return &own
}

// Completed returns the allocation with what the rules knew of it. It is the Allocation
// itself, unless that is in use.
func (d *Decision) Completed() *Allocation {
	if !d.plain() {
		return d.Allocation
	}
	located, _ := d.facts.locate(d.Allocation, new(Allocation))
	return located
}
