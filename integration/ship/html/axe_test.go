package html_test

import (
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

// axe-core comes by npm, which a test does not need. Where its file is at hand, the test
// asks it for violations of WCAG 2 and of good practice.
func TestAxeFindsNoViolation(t *testing.T) {
	path := os.Getenv("AXE_JS")
	if path == "" {
		t.Skip("*** AXE_JS does not name axe.min.js of axe-core: accessibility IS NOT TESTED by it ***")
	}
	axe, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		for name, r := range samples() {
			t.Run(name+" "+scheme, func(t *testing.T) {
				tab := open(t, r)
				tab.media("", scheme)
				tab.do(chromedp.WaitReady(".map"), chromedp.Click("#entries .fold"), chromedp.Focus(".map"), chromedp.KeyEvent("n"), chromedp.KeyEvent("\r"))
				eval[bool](tab, string(axe)+"; true")
				found := run(tab, chromedp.Evaluate[[]string](`axe.run().then((all) => all.violations.flatMap((one) =>
					one.nodes.map((node) => one.id + ': ' + node.target + ': ' + node.failureSummary)))`, chromedp.EvalAwaitPromise))
				for _, violation := range found {
					t.Error(violation)
				}
			})
		}
	}
}
