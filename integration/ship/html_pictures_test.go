package ship_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// With -update, the pictures of the documentation are taken anew.
func TestPicturesOfTheDocumentation(t *testing.T) {
	if !*update {
		t.Skip("the pictures are taken with -update")
	}
	for _, tt := range []struct {
		name, selector string
		report         report.Report
		scheme         string
		height         int64
	}{
		{"report.png", "", sampleReport(false), "light", 1800},
		{"report-dark.png", "", sampleReport(false), "dark", 1800},
		{"map-65536.png", "#pools", largeReport(), "light", 1500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tab := open(t, tt.report)
			tab.media("", tt.scheme)
			shoot := chromedp.CaptureScreenshot()
			if tt.selector != "" {
				shoot = chromedp.Screenshot(tt.selector)
			}
			tab.do(chromedp.EmulateViewport(1280, tt.height), chromedp.WaitReady(".map"))
			file := filepath.Join("..", "..", "docs", "images", tt.name)
			if err := os.WriteFile(file, run(tab, shoot), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}
