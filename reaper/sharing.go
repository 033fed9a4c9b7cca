package reaper

// A sharing keeps equal parts of decisions once. Almost all allocations of a cluster are in
// use for one of a few reasons, on one of some thousand nodes. It is for one goroutine.
type sharing struct {
	rulings map[plainRuling]*Ruling
	known   map[knowledge]*knowledge
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
		return &r
	}
	key := plainRuling{r.Rule, r.Evidence[0]}
	have := s.rulings[key]
	if have == nil {
		have = &r
		s.rulings[key] = have
	}
	return have
}

// knowledge returns the same knowledge.
func (s *sharing) knowledge(k knowledge) *knowledge {
	have := s.known[k]
	if have == nil {
		have = &k
		s.known[k] = have
	}
	return have
}

// completed returns the allocation with what the rules knew of it. It is the Allocation
// itself, unless that is in use.
func (d *Decision) completed() *Allocation {
	if !d.plain() {
		return d.Allocation
	}
	located, _ := d.facts.locate(d.Allocation)
	return located
}
