package html_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// images is where the documentation has the pictures.
var images = filepath.Join("..", "..", "..", "docs", "images")

// The pictures of the documentation are small. With -update they are taken anew.
func TestPicturesOfTheDocumentation(t *testing.T) {
	for _, tt := range []struct {
		name, selector string
		report         reaper.Report
		dark           bool
		height         int64
	}{
		{"report.png", "", sampleReport(false), false, 1340},
		{"report-dark.png", "", sampleReport(false), true, 1340},
		{"map-65536.png", "#pools", largeReport(), false, 1500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(images, tt.name)
			if *update {
				tab := open(t, tt.report)
				if tt.dark {
					tab.media("", "dark")
				}
				shoot := chromedp.CaptureScreenshot()
				if tt.selector != "" {
					shoot = chromedp.Screenshot(tt.selector)
				}
				tab.do(chromedp.EmulateViewport(1280, tt.height), chromedp.WaitReady(".map"))
				if err := os.WriteFile(file, small(t, run(tab, shoot)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() > 200<<10 {
				t.Errorf("%s has %d bytes, want at most 200 KiB", file, info.Size())
			}
		})
	}
}

// small returns a PNG with the 256 most frequent colours of a PNG. The others, which are
// those of the edges of letters, become the nearest of them.
func small(t *testing.T, full []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(full))
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[color.Color]int)
	bounds := from.Bounds()
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			counts[from.At(x, y)]++
		}
	}
	palette := color.Palette(slices.Collect(maps.Keys(counts)))
	slices.SortFunc(palette, func(a, b color.Color) int { return counts[b] - counts[a] })
	to := image.NewPaletted(bounds, palette[:min(256, len(palette))])
	nearest := make(map[color.Color]uint8, len(counts))
	for c := range counts {
		nearest[c] = uint8(to.Palette.Index(c))
	}
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			to.SetColorIndex(x, y, nearest[from.At(x, y)])
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
