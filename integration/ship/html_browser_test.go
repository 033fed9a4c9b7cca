package ship_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	cdpnetwork "github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/ip-reaper/ip-reaper/reaper/report"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

var update = flag.Bool("update", false, "write the pictures in docs/images anew")

// browser starts the one Chromium of the tests, and stopBrowser ends it.
var (
	browser     = sync.OnceValues(startBrowser)
	stopBrowser = func() {}
)

func startBrowser() (context.Context, error) {
	path, err := chromium()
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.WindowSize(1280, 900), chromedp.Flag("force-device-scale-factor", "1"), chromedp.Flag("lang", "en-US"))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	started, cancel := chromedp.NewContext(allocator)
	stopBrowser = func() {
		cancel()
		stop()
	}
	return started, chromedp.Do(started)
}

// chromium returns the path of the browser.
func chromium() (string, error) {
	var err error
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		var path string
		if path, err = exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", err
}

// A tab shows one report. It remembers what the page should not do.
type tab struct {
	*testing.T
	ctx context.Context

	mu     sync.Mutex
	wrongs []string // requests, errors and refusals by the policy of the page
}

// open writes a report as HTML and opens the file.
func open(t *testing.T, r report.Report) *tab {
	t.Helper()
	var page bytes.Buffer
	again := []string{"ip-reaper", "run", "--context", r.Run.Context, "--policy", r.Run.Policy.File}
	if err := print.Write(&page, print.Options{Format: "html", Run: again}, r); err != nil {
		t.Fatal(err)
	}
	return openPage(t, page.Bytes())
}

func openPage(t *testing.T, page []byte) *tab {
	t.Helper()
	chrome, err := browser()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("*** NO CHROMIUM: the HTML report IS NOT TESTED: install Debian's package chromium ***")
	}
	must(t, err)
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, page, 0o600); err != nil {
		t.Fatal(err)
	}
	tab := &tab{T: t}
	own := (&url.URL{Scheme: "file", Path: path}).String()
	ctx, cancel := chromedp.NewContext(chrome, chromedp.WithListener(func(event any) {
		switch e := event.(type) {
		case *cdpnetwork.EventRequestWillBeSent:
			if address, _, _ := strings.Cut(e.Request.URL, "#"); address != own {
				tab.wrong("request for " + e.Request.URL)
			}
		case *runtime.EventExceptionThrown:
			tab.wrong(fmt.Sprintf("exception: %s: %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
		case *runtime.EventConsoleAPICalled:
			tab.wrong(fmt.Sprintf("console %s: %s", e.Type, e.Args[0].Value))
		case *log.EventEntryAdded:
			tab.wrong(fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text))
		}
	}))
	t.Cleanup(cancel)
	t.Cleanup(func() {
		tab.mu.Lock()
		defer tab.mu.Unlock()
		for _, wrong := range tab.wrongs {
			t.Error(wrong)
		}
	})
	tab.ctx = ctx
	tab.do() // the first call starts the tab, and has no time limit
	tab.ctx, cancel = context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	call(tab, cdpnetwork.Enable, cdpnetwork.EnableParams{})
	call(tab, log.Enable, cdp.Empty{})
	tab.media("", "light")
	// The first maps are in view, and so they are drawn.
	tab.do(chromedp.EmulateViewport(1280, 1600), chromedp.Navigate(own), chromedp.WaitReady("html[data-ready]"))
	return tab
}

// media sets the medium, and the scheme that the user prefers.
func (t *tab) media(medium, scheme string) {
	t.Helper()
	call(t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media: medium, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// call performs a command of the protocol.
func call[P, R any](t *tab, command cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(t.ctx, command, params); err != nil {
		t.Fatal(err)
	}
}

// run returns the value of an action.
func run[V any](t *tab, action chromedp.Action[V]) V {
	t.Helper()
	value, err := chromedp.Run(t.ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func (t *tab) wrong(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrongs = append(t.wrongs, text)
}

// do performs actions. It ends the test if one fails.
func (t *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(t.ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// eval returns the value of an expression of JavaScript.
func eval[V any](t *tab, expression string) V {
	t.Helper()
	return run(t, chromedp.Evaluate[V](expression))
}

// text returns the text that the element of a selector shows.
func (t *tab) text(selector string) string {
	t.Helper()
	return eval[string](t, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// want fails the test unless an expression of JavaScript has the value.
func want[V comparable](t *tab, expression string, value V) {
	t.Helper()
	if got := eval[V](t, expression); got != value {
		t.Errorf("%s is %v, want %v", expression, got, value)
	}
}
