package ship_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// picture is an expression for the pixels of the first map. They are read from a copy,
// since Chromium complains of a canvas that is read often.
const picture = `(() => {
	const [from, copy] = [document.querySelector('.map canvas'), document.createElement('canvas')];
	[copy.width, copy.height] = [from.width, from.height];
	const ctx = copy.getContext('2d', { willReadFrequently: true });
	ctx.drawImage(from, 0, 0);
	return ctx.getImageData(0, 0, copy.width, copy.height).data;
})()`

// A pool of 65,536 addresses does not stop the browser.
func TestPoolOf65536Addresses(t *testing.T) {
	r := largeReport()
	tab := open(t, r)
	tab.do(chromedp.WaitReady(".map"))
	want(tab, entryRows+".length", 50)
	if got := eval[int](tab, "document.getElementsByTagName('*').length"); got > 2000 {
		t.Errorf("the page has %d elements", got)
	}
	if got := eval[int](tab, "new Set(new Uint32Array("+picture+".buffer)).size"); got < 8 {
		t.Errorf("the map has %d colours", got)
	}

	tab.do(chromedp.Focus(".map"), chromedp.KeyEvent(kb.End))
	if got := tab.text(".status"); got != "10.128.255.255: not allocated" {
		t.Errorf("the last cell is %q", got)
	}
	want(tab, "document.querySelector('.lens').hidden", false)

	last := r.Entries[len(r.Entries)-1].IP
	eval[bool](tab, `(() => {
		const input = document.getElementById('search');
		input.value = '`+last+`';
		return input.dispatchEvent(new Event('input'));
	})()`)
	if got := tab.text("#entries tbody tr"); !strings.Contains(got, last) {
		t.Errorf("the search for %s found %q", last, got)
	}
}

func TestSchemesAndPaper(t *testing.T) {
	tab := open(t, sampleReport(false))
	tab.do(chromedp.WaitReady(".map"))
	const back, pixel = "getComputedStyle(document.body).backgroundColor", picture + ".slice(4 * 100, 4 * 101).join()"
	light, lightCell := eval[string](tab, back), eval[string](tab, pixel)
	tab.media("", "dark")
	if got := eval[string](tab, back); got == light {
		t.Errorf("the dark page has the background %s as the light one", got)
	}
	// The map is drawn again in the next frame.
	run(tab, chromedp.Poll[bool](fmt.Sprintf("%s !== %q", pixel, lightCell)))
	// Paper is white in the dark scheme, too, and has no controls.
	tab.media("print", "dark")
	want(tab, "getComputedStyle(document.documentElement).getPropertyValue('--back').trim()", "#fff")
	want(tab, "getComputedStyle(document.querySelector('.controls')).display", "none")
	run(tab, chromedp.Poll[bool](fmt.Sprintf("%s === %q", pixel, lightCell)))
	// Maps that were never in view are drawn for paper.
	want(tab, "document.querySelectorAll('.map').length < document.querySelectorAll('.card').length", true)
	eval[bool](tab, "window.dispatchEvent(new Event('beforeprint'))")
	want(tab, "document.querySelectorAll('.map').length === document.querySelectorAll('.card').length", true)
	if pdf := run(tab, chromedp.PrintToPDF()); len(pdf) < 20<<10 || !strings.HasPrefix(string(pdf), "%PDF-") {
		t.Errorf("the PDF has %d bytes", len(pdf))
	}
}
