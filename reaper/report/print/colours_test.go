package print

import (
	"encoding/hex"
	"math"
	"regexp"
	"strings"
	"testing"
)

// light are the parts of red, green and blue of a colour, linear, from 0 to 1.
type light [3]float64

// lightOf returns the light of a colour such as #8b95a1.
func lightOf(t *testing.T, colour string) (l light) {
	t.Helper()
	bytes, err := hex.DecodeString(strings.TrimPrefix(colour, "#"))
	if err != nil || len(bytes) != 3 {
		t.Fatalf("%q is no colour: %v", colour, err)
	}
	for i, b := range bytes {
		if l[i] = float64(b) / 255; l[i] <= 0.04045 {
			l[i] /= 12.92
		} else {
			l[i] = math.Pow((l[i]+0.055)/1.055, 2.4)
		}
	}
	return l
}

func (l light) luminance() float64 { return 0.2126*l[0] + 0.7152*l[1] + 0.0722*l[2] }

// contrast is that of WCAG 2.
func contrast(a, b light) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// seen returns the light as someone with a deuteranopia or a protanopia sees it (Machado,
// Oliveira and Fernandes 2009).
func (l light) seen(by [3]light) (s light) {
	for i, row := range by {
		s[i] = min(1, max(0, row[0]*l[0]+row[1]*l[1]+row[2]*l[2]))
	}
	return s
}

var eyes = map[string][3]light{
	"any colour":   {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
}

// distance is that of CIELAB: below 3, two colours side by side are hard to tell apart.
func distance(a, b light) float64 {
	x, y := a.lab(), b.lab()
	return math.Sqrt((x[0]-y[0])*(x[0]-y[0]) + (x[1]-y[1])*(x[1]-y[1]) + (x[2]-y[2])*(x[2]-y[2]))
}

func (l light) lab() [3]float64 {
	f := func(t float64) float64 {
		if t > 0.008856 {
			return math.Cbrt(t)
		}
		return 7.787*t + 16.0/116
	}
	x := f((0.4124*l[0] + 0.3576*l[1] + 0.1805*l[2]) / 0.95047)
	y := f(l.luminance())
	z := f((0.0193*l[0] + 0.1192*l[1] + 0.9505*l[2]) / 1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

// The maps can be read in both schemes, also by those who do not see all colours: what is in
// use stands out from what is free, each pattern from its ground, and no two states are alike.
func TestColoursOfTheMapsCanBeToldApart(t *testing.T) {
	variable := regexp.MustCompile(`--s-([a-z]+)(-ink)?: (#[0-9a-f]{6})`)
	schemes := strings.Split(join([]string{"page.css"}), "prefers-color-scheme: dark")
	if len(schemes) != 2 {
		t.Fatalf("%d schemes", len(schemes))
	}
	for i, scheme := range []string{"light", "dark"} {
		states, inks := make(map[string]light), make(map[string]light)
		for _, match := range variable.FindAllStringSubmatch(schemes[i], -1) {
			if match[2] == "" {
				states[match[1]] = lightOf(t, match[3])
			} else {
				inks[match[1]] = lightOf(t, match[3])
			}
		}
		if len(states) != 9 || len(inks) != 9 {
			t.Fatalf("%s: %d states, %d inks", scheme, len(states), len(inks))
		}
		for name, eye := range eyes {
			if got := contrast(states["inuse"].seen(eye), states["free"].seen(eye)); got < 3 {
				t.Errorf("%s, %s: in use against free has a contrast of %.2f, want 3", scheme, name, got)
			}
			for a, one := range states {
				if got := contrast(one.seen(eye), inks[a].seen(eye)); a != "inuse" && a != "free" && got < 4.5 {
					t.Errorf("%s, %s: the pattern of %s has a contrast of %.2f, want 4.5", scheme, name, a, got)
				}
				for b, other := range states {
					if got := distance(one.seen(eye), other.seen(eye)); a < b && got < 10 {
						t.Errorf("%s, %s: %s and %s are alike: %.1f", scheme, name, a, b, got)
					}
				}
			}
		}
	}
}
