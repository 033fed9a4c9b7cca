package print

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// shownOfNode is how many allocations of a node are shown.
const shownOfNode = 5

// viewOfExplanation returns the view of an explanation: lines for each allocation.
func viewOfExplanation(x report.Explanation) view {
	v := view{value: x, now: x.Run.FinishedAt, caveats: x.Run.Caveats, warnings: x.Warnings}
	line := func(format string, args ...any) { v.head = append(v.head, notice{text: fmt.Sprintf(format, args...)}) }
	line("%s: %s", x.Question, summaryOf(x))
	line("%s", identity(x.Run))
	for _, a := range x.Asking {
		of := eventLines(a)
		if x.Question.Pool != "" {
			of = []string{waitingLine(a)}
		}
		for _, says := range of {
			line("  %s", says)
		}
	}
	selected := ""
	if only := x.Question.Besides(x.Run.Selection).String(); only != "" {
		selected = " (" + only + ")"
	}
	for _, s := range x.Stores {
		switch {
		case s.NotInstalled():
			line("  %s: %s", s.Name, s.Message)
		case s.Found == nil:
			line("  %s: unknown, %s: %s", s.Name, s.Status, s.Message)
		case s.Message != "":
			line("  %s: %d found%s, %s: %s", s.Name, *s.Found, selected, s.Status, s.Message)
		default:
			line("  %s: %d found%s", s.Name, *s.Found, selected)
		}
	}
	for _, c := range x.Claims {
		line("  %s: shows it (%s)", nameOfClaim(c), c.Source)
	}
	switch {
	case x.Claims != nil && len(x.Claims) == 0 && x.Ended:
		line("  only a finished pod shows it")
	case x.Claims != nil && len(x.Claims) == 0:
		line("  no pod shows it")
	}
	for _, w := range x.Withheld {
		line("  network %s of %s: %s", w.Network, w.Backend, w.Why)
	}
	if r := x.LastRelease; r != nil {
		line("  in the journal of run %s, %s: %s", r.ID, clock(&r.StartedAt), ownersOf(r.Entries))
		line("  %s", recordedBy(*r))
		for _, b := range r.Restores {
			line("  restore %s put back %s of that run", b.ID, printable.Counted(b.Restored, "address"))
		}
	}
	if about := aboutNode(x); about != "" {
		line("  %s", about)
	}
	v.tables = func(bool) (all []table) {
		if x.Question.Node != "" {
			all = nodeLines(x)
		} else {
			all = allocationBlocks(x.Found)
		}
		var places []table
		for _, p := range x.Places {
			places = append(places, placeLines(p, x.Leaked != nil && x.Question.Address == ""))
		}
		if slices.ContainsFunc(x.Asking, func(a report.Asking) bool { return a.Waits }) {
			return append(places, all...) // what it waits for comes first
		}
		return append(all, places...)
	}
	return v
}

// nodeLines says why addresses of the node that is asked about leaked, and which are the most urgent.
func nodeLines(x report.Explanation) []table {
	var why table
	why.leakLines(x.Leaks)
	entries := make([]report.Entry, len(x.Found))
	for i, e := range x.Found {
		entries[i] = e.Entry
	}
	first := table{heading: []string{"IP", "BACKEND", "POOL", "POD", "REASON", "DUE"}, spare: []string{"BACKEND"}}
	rows := rowsOf(entries, false)
	byUrgency(rows)
	for _, e := range rows[:min(len(rows), shownOfNode)] {
		first.rows = append(first.rows, []string{nameOf(e.IP, e.Key), e.backends(), e.Pool, podOf(e.Owner), string(e.Reason), clock(e.Due)})
	}
	if more := len(rows) - len(first.rows); more > 0 {
		first.say("… and %s more: -o json has each", printable.Thousands(more))
	}
	return []table{why, first}
}

// ownersOf names recorded allocations and their owners.
func ownersOf(entries []journal.RecordedEntry) string {
	var parts []string
	for _, e := range entries {
		part := nameOf(e.IP, e.Key) + " of " + e.Backend + " " + e.Pool + " for " + cmp.Or(podOf(e.Owner), "sandbox "+e.Owner.Sandbox)
		if e.Owner.Node != "" {
			part += " on node " + e.Owner.Node
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// aboutNode says that the node that is asked about is not ready, and what that keeps; nothing if it is
// ready.
func aboutNode(x report.Explanation) string {
	if x.NodeState == "" {
		return ""
	}
	var kept []report.Entry
	unknown := 0
	for _, e := range x.Found {
		if e.HeldBy(x.Question.Node) != "" {
			kept = append(kept, e.Entry)
			if e.Owner.Node != x.Question.Node {
				unknown++
			}
		}
	}
	text := "it " + x.NodeState
	if x.Live > 0 {
		text += "; " + printable.Counted(x.Live, "address") + " of pods that the API server still lists on it"
		if !strings.HasPrefix(x.NodeState, "is fenced") {
			text += ", which are deleted if it is fenced or deleted: be sure that nothing runs there"
		}
	}
	if len(kept) == 0 {
		return text
	}
	leaked := 0
	for a := range report.Addresses(kept) {
		if a.Fate.Leaked() {
			leaked++
		}
	}
	text += fmt.Sprintf("; it keeps %s (%s)", printable.Counted(len(kept), "leaked allocation"), printable.Counted(leaked, "address"))
	if unknown > 0 {
		text += ", of which " + printable.Counted(unknown, "allocation") + " may be on another node"
	}
	return text
}

// summaryOf sums up in one line the allocations, or what is asked about.
func summaryOf(x report.Explanation) string {
	if x.Question.Pool != "" && len(x.Places) > 0 {
		return summaryOfPlaces(x)
	}
	n, only := len(x.Found)+x.Others, x.Question.Besides(x.Run.Selection).String()
	found := printable.Counted(n, "allocation")
	if n > 0 && only != "" {
		found += " of " + only
	}
	switch {
	case n == 0 && len(x.Stores) > 0 && !slices.ContainsFunc(x.Stores, func(s report.StoreAnswer) bool { return !s.NotInstalled() }):
		found = report.NoIPAM
	case n == 0 && !slices.ContainsFunc(x.Stores, func(s report.StoreAnswer) bool { return s.Found != nil }):
		found = "its allocations are unknown: no store was listed"
	case n == 0 && only != "":
		found = "no allocation of " + only + "; there may be others"
	case n == 0 && x.Question.Address != "":
		found = joined(claimantOf(x), whereNowhere(x))
	case n == 0:
		found = "no store that was listed has an allocation of it"
	case x.Leaked == nil:
		found += "; the leak count is unknown"
	case x.Question.Address != "":
		found = joined(stateOfAddress(x), found)
	default:
		found += fmt.Sprintf("; %s: %d due, %d waiting, %d held", printable.Counted(x.Leaked.Total, "leaked address"), x.Leaked.Due, x.Leaked.Waiting, x.Leaked.Held)
		found += x.Leaked.Unsure()
	}
	for _, a := range slices.Backward(x.Asking) {
		found = summaryOfAsking(a, x) + "; " + found
	}
	return found
}

// stateOfAddress says whose an address is that some store has, and what becomes of it.
func stateOfAddress(x report.Explanation) string {
	holder, state := claimantOf(x), "not known to be leaked"
	for _, e := range x.Found {
		owner := podOf(e.Owner)
		if owner != "" {
			owner = "pod " + owner
		}
		if e.Address != nil && e.Address.Fate.Leaked() {
			return joined(owner, "leaked and "+e.Address.Fate.Status().String())
		}
		holder = cmp.Or(holder, owner)
		if e.Verdict == judge.InUse {
			state = "in use"
		}
	}
	if len(x.Sharing) > 0 {
		return holder
	}
	return joined(holder, state)
}

// claimantOf names what shows an address.
func claimantOf(x report.Explanation) string {
	if n := len(x.Sharing); n > 0 {
		count := cmp.Or(map[int]string{2: "TWO"}[n], strconv.Itoa(n))
		return "in use by " + count + " pods: " + strings.Join(x.Sharing, " and ")
	}
	if len(x.Claims) == 0 {
		return ""
	}
	return nameOfClaim(x.Claims[0])
}

// nameOfClaim names one that shows an address.
func nameOfClaim(by report.Shown) string {
	return string(by.Kind) + " " + strings.TrimPrefix(by.Namespace+"/"+by.Name, "/")
}

// summaryOfAsking says what a pod waits for, or why it does not.
func summaryOfAsking(a report.Asking, x report.Explanation) string {
	text := ""
	switch {
	case x.Question.Pod == "":
		text = "pod " + a.Namespace + "/" + a.Pod + " "
	case x.Question.Namespace == "":
		text = "in namespace " + a.Namespace + ", "
	}
	if !a.Waits {
		return text + a.Why
	}
	text += "waits for an address"
	if len(a.Fixed) > 0 {
		text += "; it asks for " + printable.Some(a.Fixed) + " and no other: " + cmp.Or(printable.Some(a.Refused), "explain that address to see what has it")
	}
	if len(x.Places) > 0 {
		text += " of " + summaryOfPlaces(x)
	}
	if len(a.NoPools) > 0 {
		text += "; it asks for the IPPool " + printable.Some(a.NoPools) + ", and no IPPool of that name and IP family was read"
	}
	if a.ByNamespace != "" && (len(x.Places) > 1 || len(a.NoPools) > 0) {
		text += "; " + a.ByNamespace
	}
	if len(a.Unknown) > 0 {
		text += "; not known here: the network of " + printable.Some(a.Unknown)
		if a.Near != "" {
			text += " (" + a.Near + ")"
		}
	}
	for _, one := range a.Rangeless[:min(namedPlaces, len(a.Rangeless))] {
		text += "; none of " + one.Attachment + ": " + one.Why
	}
	if a.NodeState != "" {
		text += "; its node " + a.Node + " " + a.NodeState
	}
	switch {
	case len(a.Events) > 0:
		text += "; an event says what failed"
	case a.EventsUnknown != "":
		text += "; whether an event says why is unknown"
	default:
		text += "; no event says why"
	}
	return text
}

// eventLines says what events say of why a pod waits, the newest first.
func eventLines(a report.Asking) []string {
	const most = 3
	const room = 300 // bytes of what one says
	var lines []string
	for _, e := range a.Events[:min(most, len(a.Events))] {
		line := "event " + clock(&e.Last)
		if e.Count > 1 {
			line += fmt.Sprintf(", %d times since %s", e.Count, clock(&e.Since))
		}
		lines = append(lines, line+", "+e.Reason+": "+printable.Shorten(e.Says, room))
	}
	if more := len(a.Events) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("… and %s: -o json has each", printable.Counted(more, "older event")))
	}
	if a.EventsUnknown != "" {
		lines = append(lines, "its events are unknown: "+a.EventsUnknown)
	}
	return lines
}

// waitingLine says of a pod that waits what its newest event says.
func waitingLine(a report.Asking) string {
	says := "no event says why"
	if all := eventLines(a); len(all) > 0 {
		says = all[0]
	}
	return "pod " + a.Namespace + "/" + a.Pod + " waits: " + says
}

// foreign says what is known of a network that is Foreign.
const foreign = "pods show addresses of it, and the store has none of these: another IPAM gives them, or the store's records were lost"

// namedPlaces is how many networks and pools a summary names.
const namedPlaces = 3

// summaryOfPlaces says which networks and pools are full, and how much of them leaked.
func summaryOfPlaces(x report.Explanation) string {
	if len(x.Places) == 1 && x.Places[0].Name == x.Question.Pool {
		return fillOf(x.Places[0], x.Leaked != nil)
	}
	var parts []string
	for _, p := range x.Places[:min(namedPlaces, len(x.Places))] {
		parts = append(parts, p.Name+" ("+fillOf(p, x.Leaked != nil)+")")
	}
	if more := len(x.Places) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// fillOf says whether a place is full, and how much of it leaked.
func fillOf(p report.Place, judged bool) string {
	text := "of an unknown size"
	switch {
	case p.Closed != "":
		text = "closed: " + p.Closed
	case p.Foreign:
		text = foreign
	case p.Free != nil && p.Free.Sign() == 0 && len(p.Elsewhere) > 0:
		text = "full, but " + printable.Some(p.Elsewhere) + " is not"
	case p.Free != nil && p.Free.Sign() == 0:
		text = "full"
	case p.NoBlock != nil:
		text = p.NoBlock.Why
	case p.Free != nil:
		text = number(p.Free) + " of " + number(p.Capacity) + " free"
	}
	if p.Part != nil {
		text = "its part: " + text
	}
	if p.By != "" {
		text += ", by selector"
	}
	if judged {
		text += fmt.Sprintf(", %d leaked", p.Leaked)
	}
	for _, l := range p.Leaks {
		if l.Status == report.Undecided {
			text += fmt.Sprintf(", %d %s", l.Count, l.Reason.Words())
		}
	}
	if p.Told {
		text += ", " + toldOf(p)
	}
	return text
}

// toldOf says whether an event of the pod that waits names a place.
func toldOf(p report.Place) string {
	switch {
	case p.OnlyTold:
		return "only an event names it"
	case p.Told:
		return "an event names it"
	}
	return ""
}

// whereNowhere says where an address that no store has is free.
func whereNowhere(x report.Explanation) string {
	names := make([]string, len(x.Places))
	for i, p := range x.Places {
		names[i] = p.Backend + " " + p.Name
	}
	in := strings.Join(names, " and ")
	switch {
	case in == "":
		return "in no store that was listed, and in the range of no pool that is known"
	case x.Free == nil:
		return "in no store that was listed; it is in the range of " + in
	case *x.Free:
		return "free in " + in
	case x.Unrecorded:
		return "in no store, and not free in " + in + ", which may give it to another pod"
	default:
		return "in no store, and " + in + " does not hand it out"
	}
}

// field adds a line about what is explained, if there is anything to say.
func (t *table) field(name, value string) {
	if value != "" {
		t.say("  %-10s  %s", name, value)
	}
}

// placeLines returns the lines of a network or of a pool.
func placeLines(p report.Place, judged bool) table {
	var t table
	kind := "pool"
	if p.Network {
		kind = "network"
	}
	t.say("%s %s of %s, %s", kind, p.Name, p.Backend, cmp.Or(p.Range, "range unknown"))
	t.field("attached", printable.Some(p.Attachments))
	t.field("its part", printable.Some(p.Part))
	t.field("used", fmt.Sprintf("%d of %s (%s), %s free", p.Used, number(p.Capacity), percent(p.Usage), number(p.Free)))
	t.field("closed", p.Closed)
	if p.Foreign {
		t.field("but", foreign)
	}
	t.field("only by", p.By)
	if p.Manual {
		t.field("only for", "pods that name it (assignmentMode Manual)")
	}
	t.field("and", toldOf(p))
	if p.Blocks != nil {
		t.field("blocks", blocksOf(*p.Blocks))
	}
	if p.NoBlock != nil {
		t.field("but", p.NoBlock.Why)
	}
	t.field("not free", lostOf(p.Usage))
	if judged {
		t.usedLines(p)
	}
	if p.NoBlock != nil {
		t.advise(p.NoBlock.Remedies)
	}
	return t
}

// usedLines says who has the addresses of a place, and what would give back those that leaked.
func (t *table) usedLines(p report.Place) {
	t.field("has", fmt.Sprintf("%d live, %d leaked (%d protected), %d other", p.Live, p.Leaked, p.Protected, p.Other))
	t.field("of these", byNameOf(p.Usage))
	if len(p.Leaks) == 0 && p.Blocked+p.Unrecorded == 0 && p.Free != nil && p.Free.Sign() == 0 && p.Closed == "" && len(p.Elsewhere) == 0 && !p.OnlyTold {
		larger := "add another range (IPPools do not change theirs, and a changed range of an attachment begins empty)"
		switch {
		case len(p.Unshown) > 0:
			larger = "explain " + printable.Some(p.Unshown) + " first (such a pod holds several addresses of it, and shows none)"
		case len(p.Withheld) > 0:
			larger = "hand out more of its addresses (some are " + printable.Some(p.Withheld) + ")"
		}
		t.field("to change", "nothing leaked, so there is nothing to release: "+larger+", or run fewer pods")
	}
	t.leakLines(p.Leaks)
}

// leakLines counts leaks by what becomes of them and why, and says what would change that.
func (t *table) leakLines(leaks []report.Leak) {
	for _, l := range leaks {
		line := fmt.Sprintf("%s, %s", printable.Thousands(l.Count), l.Reason)
		if l.NextDue != nil {
			line += ", the next is due " + clock(l.NextDue)
		}
		word := l.Status.String()
		if l.Reason == judge.TooYoung {
			word = looks[report.Waiting].word
		}
		t.field(word, line)
		t.advise(l.Remedies)
	}
}

// advise says what would change a decision.
func (t *table) advise(remedies []judge.Remedy) {
	for _, remedy := range remedies {
		t.field("to change", remedy.Says)
		if remedy.Command != "" {
			t.field(" ", "$ "+remedy.Command)
		}
	}
}

// allocationBlocks returns the lines of allocations. One that says nothing new of its address, as the reservation of
// an entry, adds only where it is.
func allocationBlocks(found []report.Explained) (blocks []table) {
	var told []report.Explained // one for each block
	for _, e := range found {
		lines := allocationLines(e)
		at := slices.IndexFunc(told, func(one report.Explained) bool {
			said := allocationLines(one).below
			return one.IP == e.IP && !slices.ContainsFunc(lines.below[1:], func(line string) bool { return !slices.Contains(said, line) })
		})
		if at >= 0 {
			blocks[at].below = slices.Insert(blocks[at].below, 1, lines.below[0])
			continue
		}
		told = append(told, e)
		if last := len(blocks) - 1; last >= 0 && len(e.Remedies) > 0 && slices.Equal(e.Remedies, told[last].Remedies) {
			e.Remedies = []judge.Remedy{{Says: "as above"}}
			lines = allocationLines(e)
		}
		blocks = append(blocks, lines)
	}
	return blocks
}

// allocationLines returns the lines of one allocation, without the rules that did not match.
func allocationLines(e report.Explained) table {
	var t table
	t.say("%s of %s %s, key %s", nameOf(e.IP, e.Key), e.Backend, e.Pool, e.Key)
	t.field("pod", podOf(e.Owner))
	t.field("sandbox", e.Owner.Sandbox)
	t.field("interface", e.Owner.Interface)
	t.field("node", e.Owner.Node)
	t.field("state", lookOf(&e.Entry).word+", "+string(e.Reason))
	t.field("note", e.Note)
	t.field("first seen", clock(e.FirstSeen))
	t.field("due", clock(e.Due))
	t.field("error", e.Error)
	for _, rule := range e.Asked {
		if rule.Matched {
			t.field(fmt.Sprintf("rule %2d", rule.Number), string(rule.Reason)+": "+rule.Doc)
		}
	}
	if e.ChangedBy != "" {
		t.field("then", "the "+e.ChangedBy+" changed the decision")
	}
	for _, one := range e.Evidence {
		t.field("evidence", one.Source+": "+one.Says)
	}
	t.advise(e.Remedies)
	return t
}
