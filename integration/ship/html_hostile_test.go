package ship_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// attacks are names that run a script, load a picture, or reorder text if a page takes them
// for markup.
var attacks = []string{
	`</script><script>window.pwned = 1</script>`,
	`<img src=http://203.0.113.1/x onerror="window.pwned = 1">`,
	`"><svg onload="window.pwned = 1"><style>@import url(http://203.0.113.1/y)</style>`,
	`<!--<script>`, `javascript:window.pwned=1`, `__proto__`, "gpj.\u202eexe\u2066", "\u2028</script><iframe src=//203.0.113.1>",
	`<a href=http://203.0.113.1 autofocus onfocus="window.pwned = 1">`,
}

// Promise: a name in a store neither runs nor loads anything, in any place of the page.
func TestHostileNamesStayText(t *testing.T) {
	s := newSample(false)
	next := make(map[string]string)
	s.ProtectedBy = make(map[ipam.PoolRef]string)
	for i, attack := range attacks {
		next[attack] = attacks[(i+1)%len(attacks)]
		s.pool("whereabouts", attack, "10.0.0.0/28", attack, 0.9)
		s.ProtectedBy[ipam.PoolRef{Backend: "whereabouts", Name: attack}] = next[attack]
		s.network(attack, attack, attack, 14, next[attack], attack)
		s.Warnings = append(s.Warnings, attack)
		s.Refused = append(s.Refused, judge.Refusal{Limit: attack, Message: next[attack], Remedy: attack})
	}
	r := s.finish()
	for i := range r.Entries {
		e := &r.Entries[i]
		attack, next := e.Pool, next[e.Pool]
		e.Key, e.Note, e.Error, e.Reason = next, attack, next, judge.Reason(attack)
		e.Owner = ipam.EntryOwner{Namespace: attack, Pod: next, Sandbox: attack, Interface: next, Node: attack}
		e.Evidence = []judge.Evidence{{Source: attack, Says: next}}
	}
	r.Result.Error, r.Run.Cluster, r.Run.Context, r.Run.ID, r.Run.StateNamespace = attacks[0], attacks[1], attacks[2], attacks[3], attacks[4]
	r.Run.Version, r.Run.Policy.File = attacks[6], attacks[7]
	r.Leaked.HeldBy = []report.ReasonCount{{Reason: judge.Reason(attacks[0]), Count: 1}}
	r.Entries[0].IP, r.Pools[1].Range, r.Networks[1].Pools = attacks[0], attacks[1]+"/24", nil
	r.Networks[0].Backend, r.Networks[0].Capacity = "whereabouts", big.NewInt(14)
	for i := range r.Backends {
		r.Backends[i].Message = attacks[i%len(attacks)]
	}

	tab := open(t, r)
	tab.do(chromedp.WaitReady(".map"))
	// All that unfolds is unfolded, and every cell of a map is asked for its entry.
	eval[bool](tab, `(() => {
		document.querySelectorAll('details').forEach((one) => { one.open = true; });
		document.querySelectorAll('.fold').forEach((one) => one.click());
		document.querySelectorAll('select').forEach((one) => { one.selectedIndex = 1; one.dispatchEvent(new Event('change')); });
		for (const map of document.querySelectorAll('.map')) {
			map.focus();
			for (let i = 0; i < 16; i++) {
				map.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));
				map.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
			}
		}
		return true;
	})()`)
	want(tab, "typeof window.pwned", "undefined")
	want(tab, "document.querySelectorAll('img, svg, iframe, style ~ style, object, embed, link, base, [onerror], [onload], [onfocus]').length", 0)
	want(tab, "document.querySelectorAll('a, script').length", 3)
	want(tab, "({}).x === undefined && !('pwned' in Object.prototype)", true)
	body := tab.text("body")
	if strings.ContainsAny(body, "\u202e\u2066\u2028") {
		t.Error("the page has characters that reorder text")
	}
	for _, shown := range []string{attacks[0], attacks[1], `gpj.\u202eexe\u2066`} {
		if !strings.Contains(body, shown) {
			t.Errorf("the page does not show %q as text", shown)
		}
	}
}
