package ship_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

// entryRows is an expression for the rows of the table of entries.
const entryRows = `[...document.querySelectorAll('#entries tbody tr:not(.details)')]`

func TestPageBeginsWithTheBottomLine(t *testing.T) {
	r := sampleReport(false)
	r.Run.Caveats = []string{"a caveat", "another one"}
	tab := open(t, r)
	top := strings.Join(strings.Fields(tab.text("#top")), " ")
	for _, want := range []string{"ip-reaper run a caveat another one " + r.BottomLine(), r.Run.Cluster, "assigned addresses, pods left " + printable.Thousands(r.Leaked.Total) + " behind, as far as Kubernetes knows; this run gave back " + fmt.Sprint(r.Leaked.Released) + "; " + fmt.Sprint(r.Leaked.Due) + " can be given back now. No address in use is touched.", "prod-eu1",
		"State namespace ip-reaper", "/etc/ip-reaper/policy.yaml: grace period 15m, min age 5m", "2026-03-01 12:00:00 UTC, took 1.4 s"} {
		if !strings.Contains(top, want) {
			t.Errorf("the top does not say %q:\n%s", want, top)
		}
	}
	if got := tab.text("#warnings"); !strings.Contains(got, r.Warnings[0]) || !strings.Contains(got, r.Warnings[1]) {
		t.Errorf("warnings: %s", got)
	}
	want(tab, "document.getElementById('refused').hidden", true)
	next := strings.Join(strings.Fields(tab.text("#next")), " ")
	for _, want := range []string{
		"ip-reaper run --context prod-eu1 --policy /etc/ip-reaper/policy.yaml --dry-run=false",
		"ip-reaper restore --context prod-eu1 ", " --run " + r.Run.ID,
		fmt.Sprintf("Addresses wait for nodes that are not ready: %d for worker-7. Make sure that a node is off, then fence it", r.Leaked.HeldBy[0].Count), " node/worker-7",
	} {
		if !strings.Contains(next, want) {
			t.Errorf("the page does not say %q:\n%s", want, next)
		}
	}
}

// The page counts addresses, as its first line does, and an address that two stores hold is one row
// whose details name both.
func TestPageCountsAddresses(t *testing.T) {
	s := newSample(true)
	s.pool("whereabouts", "kube-system/10.8.0.0-24", "10.8.0.0/24", "worker-3", 0.9)
	s.network("whereabouts", "10.8.0.0/24", "10.8.0.0/24", 254, "", "kube-system/10.8.0.0-24")
	for i, d := range s.Verdicts.Decisions {
		if d.Reason == judge.RuleHold {
			d.Reason = judge.Protected
			s.Verdicts.Decisions[i] = d
		}
		allocation := *d.Allocation
		allocation.Backend, allocation.Pool = "overlapping", "kube-system/"+allocation.IP.String()
		d.Allocation = &allocation
		s.Verdicts.Decisions = append(s.Verdicts.Decisions, d)
	}
	n := len(s.Verdicts.Decisions) / 2
	for i := range n {
		s.Outcomes[n+i] = s.Outcomes[i]
	}
	r := s.finish()
	if r.Leaked.Total == 0 || r.Leaked.Allocations != 2*r.Leaked.Total {
		t.Fatalf("%d addresses and %d allocations leaked", r.Leaked.Total, r.Leaked.Allocations)
	}
	tab := open(t, r)
	tallies := strings.Join(strings.Fields(tab.text(".tallies")), " ")
	for _, want := range []string{fmt.Sprint(r.Leaked.Due, " due"), fmt.Sprint(r.Leaked.Waiting, " waiting"), fmt.Sprint(r.Leaked.Held, " held")} {
		if !strings.Contains(tallies, want) {
			t.Errorf("the buttons do not say %q: %s", want, tallies)
		}
	}
	if got := tab.text("#entries .count"); !strings.HasPrefix(got, fmt.Sprint(n, " entries")) {
		t.Errorf("the table has %s, want %d", got, n)
	}
	for _, heading := range []string{"Leaks by nodes", "Leaks by namespaces"} {
		want(tab, fmt.Sprintf("[...document.querySelectorAll('[aria-label=%q] tbody tr')].reduce((sum, row) => sum + Number(row.cells[1].innerText), 0)", heading), r.Leaked.Total)
	}
	want(tab, "document.querySelector('#pools .network strong').innerText", fmt.Sprint(*r.Networks[0].FullPercent, "%"))
	want(tab, "document.querySelectorAll('#pools .card h3').length", 0) // the pool is all of its network
	want(tab, "document.querySelectorAll('#pools .map').length", 1)
	tab.do(chromedp.Focus("#entries .fold"), chromedp.KeyEvent(kb.Enter))
	if details := tab.text("#entries .details"); !strings.Contains(details, "overlapping, pool kube-system/10.8.0.") {
		t.Errorf("the details do not name the reservation:\n%s", details)
	}
}

// A reader of the page need not reckon with UTC.
func TestPageSaysHowFarTimesAre(t *testing.T) {
	tab := open(t, sampleReport(true))
	tab.do(chromedp.SendKeys("#filter-State", "held"), chromedp.Focus("#entries .fold"), chromedp.KeyEvent(kb.Enter))
	if got := tab.text("#entries .details"); strings.Count(got, "is not ready since 2026-03-01T11:13:00Z (47 min ago)") != 2 {
		t.Errorf("note and evidence do not say how long ago:\n%s", got)
	}
}

// Who looks at the page in the night, on a phone, has the entries before the maps, and scrolls
// in one direction only.
func TestPageOnAPhone(t *testing.T) {
	tab := open(t, sampleReport(false))
	const entriesFirst = "document.getElementById('entries').compareDocumentPosition(document.getElementById('pools')) === Node.DOCUMENT_POSITION_FOLLOWING"
	want(tab, entriesFirst, false)
	tab.do(chromedp.EmulateViewport(390, 844))
	run(tab, chromedp.Poll[bool](entriesFirst))
	tab.do(chromedp.Reload(), chromedp.WaitReady("html[data-ready]"))
	eval[bool](tab, "window.dispatchEvent(new Event('beforeprint'))") // draws all maps
	want(tab, "document.documentElement.scrollWidth <= 390", true)
	want(tab, "[...document.querySelectorAll('#pools .scroll, #entries .scroll')].filter((one) => one.scrollWidth > one.clientWidth).length", 0)
}

// What a pod shows and no store has is not drawn as free.
func TestUnrecordedAddressIsInTheMap(t *testing.T) {
	tab := open(t, sampleReport(true))
	pools := strings.Join(strings.Fields(tab.text("#pools")), " ")
	for _, want := range []string{"not recorded", "free, 2 not recorded"} {
		if !strings.Contains(pools, want) {
			t.Errorf("the pools do not say %q:\n%s", want, pools)
		}
	}
	eval[bool](tab, "window.dispatchEvent(new Event('beforeprint'))") // draws all maps
	want(tab, `(() => {
		const box = [...document.querySelectorAll('.map')].find((one) => one.getAttribute('aria-label').includes('10.244.67.0/26'));
		const press = (key) => box.dispatchEvent(new KeyboardEvent('keydown', { key }));
		press('Home');
		for (let at = 0; at < 3; at++) press('ArrowRight');
		return box.closest('.mapped').querySelector('.status').textContent;
	})()`, "10.244.67.3: not recorded, shop/cache-3 on worker-4, no store has it")
}

// What holds nothing has no row and no map, but its name is there. What could not be listed keeps
// its row.
func TestNothingIsARowOfZeros(t *testing.T) {
	s := newSample(true)
	s.pool("calico", "10.9.0.0/26", "10.9.0.0/26", "worker-3", 0.5)
	s.pool("whereabouts", "kube-system/10.8.0.0-24", "10.8.0.0/24", "", 0)
	s.network("whereabouts", "lan", "10.7.0.0/24", 254, "")
	s.Inventory.Listings = []ipam.Listing{
		{Backend: "overlapping", Status: ipam.StatusOK},
		{Backend: "azurecns", Status: ipam.StatusSkipped, Message: "disabled by the policy"},
		{Backend: "reservedIPs", Status: ipam.StatusFailed, Message: "forbidden"},
	}
	tab := open(t, s.finish())
	want(tab, "[...document.querySelectorAll('.card h3')].map((one) => one.innerText).join()", "10.9.0.0/26")
	if got := tab.text(".card"); !strings.Contains(got, "worker-3") {
		t.Errorf("the block does not name its node: %s", got)
	}
	want(tab, "[...document.querySelectorAll('.names code')].map((one) => one.textContent).join()", "kube-system/10.8.0.0-24,lan")
	want(tab, "[...document.querySelectorAll('#backends tbody th')].map((one) => one.innerText).join()", "reservedIPs,calico")
	if got := tab.text("#backends"); !strings.Contains(got, "overlapping: ok, no entries") || !strings.Contains(got, "azurecns: skipped, disabled by the policy") || strings.Contains(got, "Failed") {
		t.Errorf("backends: %s", got)
	}
}

// A refused plan does not read as approved: the refusals are in view at once.
func TestRefusalComesBeforeThePools(t *testing.T) {
	r := refusedReport()
	tab := open(t, r)
	refused := strings.Join(strings.Fields(tab.text("#refused")), " ")
	for _, one := range r.Result.Refused {
		if !strings.Contains(refused, one.Limit+" "+one.Message+" "+one.Remedy) {
			t.Errorf("the page does not say %q:\n%s", one, refused)
		}
	}
	want(tab, "document.getElementById('refused').getBoundingClientRect().bottom < 550", true)
	if got := tab.text(".plainly"); !strings.Contains(got, "could be given back now, but the plan was refused") {
		t.Errorf("the sentence for everybody: %s", got)
	}
	if got := tab.text("h1"); !strings.Contains(got, "still due but refused") {
		t.Errorf("bottom line: %s", got)
	}
}

func TestAddressesSortAsAddresses(t *testing.T) {
	tab := open(t, sampleReport(false))
	addresses := func() []netip.Addr {
		var all []netip.Addr
		for _, text := range eval[[]string](tab, entryRows+".map((row) => row.cells[0].innerText)") {
			all = append(all, netip.MustParseAddr(text))
		}
		return all
	}
	tab.do(chromedp.Click("#entries thead th:nth-child(1) button"))
	up := addresses()
	if !slices.IsSortedFunc(up, netip.Addr.Compare) || up[0] != netip.MustParseAddr("10.56.0.1") || len(up) != 50 {
		t.Errorf("addresses upwards: %s", up)
	}
	want(tab, "document.querySelector('#entries thead th').ariaSort", "ascending")
	tab.do(chromedp.Click("#entries thead th:nth-child(1) button"))
	down := addresses()
	slices.Reverse(down)
	if !slices.IsSortedFunc(down, netip.Addr.Compare) || !down[len(down)-1].Is6() {
		t.Errorf("addresses downwards: %s", down)
	}
	want(tab, "document.querySelector('#entries thead th').ariaSort", "descending")
}

func TestTableCanBeSearchedAndFiltered(t *testing.T) {
	r := sampleReport(false)
	tab := open(t, r)
	tab.do(chromedp.SendKeys("#search", "CHECKOUT/ worker-12"))
	n := 0
	for _, e := range r.Entries {
		if e.Owner.Namespace == "checkout" && (e.Owner.Node == "worker-12" || strings.Contains(e.Owner.Pod, "worker-12")) {
			n++
		}
	}
	if got := tab.text("#entries .count"); n == 0 || !strings.HasPrefix(got, fmt.Sprintf("%d of 1,", n)) {
		t.Errorf("the search found %q, want %d", got, n)
	}
	want(tab, entryRows+".every((row) => row.innerText.includes('checkout/') && row.innerText.includes('worker-12'))", true)

	tab.do(chromedp.Click(".controls button"))
	tab.do(chromedp.SendKeys("#filter-State", "waiting"), chromedp.SendKeys("#filter-Backend", "calico"), chromedp.SendKeys("#filter-Reason", "PodF"))
	want(tab, entryRows+".length > 0 && "+entryRows+".every((row) => row.innerText.includes('waiting') && row.innerText.includes('PodFinished'))", true)
	n = 0
	for _, e := range r.Entries {
		if e.Backend == "calico" && e.Reason == judge.PodFinished {
			n++
		}
	}
	want(tab, entryRows+".length", n)

	// A state's button filters, and Next turns the page.
	tab.do(chromedp.Click(".tallies li:last-child button"))
	if got := tab.text("#entries .count"); !strings.HasPrefix(got, "1–50 of 1,") {
		t.Errorf("the button of the addresses in use shows %q", got)
	}
	first := tab.text("#entries tbody tr")
	tab.do(chromedp.Click("#entries .pager button:last-child"))
	if got := tab.text("#entries tbody tr"); got == first || !strings.HasPrefix(tab.text("#entries .count"), "51–100 of 1,") {
		t.Errorf("the second page begins with %q", got)
	}
}

func TestEntryUnfoldsToItsEvidenceByKeyboard(t *testing.T) {
	tab := open(t, sampleReport(false))
	tab.do(chromedp.Focus("#entries .fold"), chromedp.KeyEvent(kb.Enter))
	details := tab.text("#entries .details")
	for _, want := range []string{"ip-reaper explain --context prod-eu1 ", "Evidence", "list of pods a pod of that name exists, its UID is another", "etcdserver: request timed out", "1e88fb5dec7c84a0", "2026-03-01 "} {
		if !strings.Contains(details, want) {
			t.Errorf("the details do not say %q:\n%s", want, details)
		}
	}
	want(tab, "document.querySelector('#entries .fold').ariaExpanded", "true")
	tab.do(chromedp.KeyEvent(kb.Enter))
	want(tab, "document.querySelector('#entries .details') === null", true)
}

func TestMapByKeyboardAndMouse(t *testing.T) {
	tab := open(t, sampleReport(false))
	tab.do(chromedp.WaitReady(".map"), chromedp.Focus(".map"))
	status := func() string { return tab.text(".status") }
	for _, step := range []struct{ key, want string }{
		{kb.ArrowRight, "10.56.0.1: "}, {kb.ArrowDown, "10.56.0.65: "}, {kb.ArrowLeft, "10.56.0.64: "}, {kb.ArrowUp, "10.56.0.0: not allocated"},
		{kb.ArrowUp, "10.56.0.0: not allocated"}, {kb.End, "10.56.3.255: not allocated"}, {kb.Home, "10.56.0.0: not allocated"},
	} {
		tab.do(chromedp.KeyEvent(step.key))
		if got := status(); !strings.HasPrefix(got, step.want) {
			t.Errorf("after %q the map says %q, want %q", step.key, got, step.want)
		}
	}
	tab.do(chromedp.KeyEvent("n"), chromedp.KeyEvent(kb.Enter))
	if got := status(); strings.Contains(got, "in use") || strings.Contains(got, "not allocated") {
		t.Errorf("the next finding is %q", got)
	}
	address, _, _ := strings.Cut(status(), ": ")
	if got := tab.text(".found"); !strings.Contains(got, address) || !strings.Contains(got, "Evidence") {
		t.Errorf("Enter on %s shows %q", address, got)
	}

	at := eval[[]float64](tab, `(() => { const box = document.querySelector('.map canvas').getBoundingClientRect(); return [box.left + 92 + 16 * 20 + 8, box.top + 8]; })()`)
	tab.do(chromedp.MouseClickXY(at[0], at[1]))
	if got := tab.text(".found"); !strings.Contains(got, "10.56.0.20") {
		t.Errorf("a click on 10.56.0.20 shows %q, %q", status(), got)
	}
}

// All that can be clicked can be reached by Tab, and shows that it has the focus.
func TestFocusIsVisibleEverywhere(t *testing.T) {
	tab := open(t, sampleReport(false))
	run(tab, chromedp.Poll[bool]("document.querySelector('.map') !== null"))
	const focused = `(() => { const e = document.activeElement; const s = getComputedStyle(e);
		return [e.tagName + '.' + e.className, s.outlineStyle === 'none' ? 'hidden' : 'visible']; })()`
	seen := make(map[string]bool)
	for range 250 {
		tab.do(chromedp.KeyEvent(kb.Tab))
		now := eval[[]string](tab, focused)
		if now[0] == "BODY." {
			break // the last element was before it
		}
		if now[1] != "visible" {
			t.Errorf("the focus on %s is not visible", now[0])
		}
		seen[now[0]] = true
	}
	for _, want := range []string{"A.skip", "BUTTON.tally", "SUMMARY.", "DIV.map", "DIV.scroll", "INPUT.", "SELECT.", "BUTTON.", "BUTTON.fold"} {
		if !seen[want] {
			t.Errorf("Tab does not reach %s: %v", want, seen)
		}
	}
}

// A network of hundreds of blocks does not fill the page at once.
func TestManyPoolsComeByAButton(t *testing.T) {
	s := newSample(true)
	for i := range 60 {
		s.pool("calico", fmt.Sprint("block-", i), fmt.Sprintf("10.9.%d.0/26", i), "", 0.5)
	}
	tab := open(t, s.finish())
	const cards = "document.querySelectorAll('.card').length"
	want(tab, cards, 24)
	tab.do(chromedp.Click(".grid + button"))
	want(tab, cards, 48)
	want(tab, "document.activeElement === document.querySelectorAll('.card')[24]", true)
	tab.do(chromedp.Click(".grid + button"))
	want(tab, cards, 60)
	want(tab, "document.querySelector('.grid + button').hidden", true)
}

// The map of a range that is too large for a cell an address has the addresses that are
// held.
func TestMapOfALargeRange(t *testing.T) {
	s := newSample(true)
	s.pool("whereabouts", "pool", "fd00:cafe::/64", "", 0.9)
	r := s.finish()
	tab := open(t, r)
	tab.do(chromedp.WaitReady(".map"), chromedp.Focus(".map"), chromedp.KeyEvent(kb.End))
	if got, last := tab.text(".status"), r.Entries[len(r.Entries)-1].IP; !strings.HasPrefix(got, last+": ") {
		t.Errorf("the last cell is %q, want that of %s", got, last)
	}
}

func TestReportOfARestore(t *testing.T) {
	var page bytes.Buffer
	restored := report.RestoreReport{
		Kind: "RestoreReport", Run: report.RunInfo{ID: "20260301-130000-FEDCBA", StartedAt: noon}, Journal: journal.Run{ID: "20260301-120000-ABCDEF"},
		Summary: report.RestoreCounts{Records: 2, Restored: 1, Taken: 1},
		Entries: []report.RestoreEntry{
			{Backend: "calico", Pool: "a", Key: "1", IP: "10.0.0.1", Outcome: report.Restored},
			{Backend: "calico", Pool: "a", Key: "2", IP: "10.0.0.2", Outcome: report.Taken, Error: "pod shop/b has it"},
		},
	}
	if err := print.WriteRestore(&page, print.Options{Format: "html"}, restored); err != nil {
		t.Fatal(err)
	}
	tab := openPage(t, page.Bytes())
	if got := tab.text("h1"); got != "put back 1 of 2 allocations of run 20260301-120000-ABCDEF" {
		t.Errorf("bottom line: %s", got)
	}
	want(tab, entryRows+".map((row) => row.cells[0].innerText + ' ' + row.cells[1].innerText).join()", "10.0.0.2 taken,10.0.0.1 restored")
	want(tab, "document.getElementById('pools').hidden", true)
}
