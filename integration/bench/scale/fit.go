package main

import "math"

// A point is a figure of one size.
type point struct{ size, figure float64 }

// slope is the slope of the straight line through the logarithms of the points, by least
// squares: the exponent with which the figure grows. It is not a number for points of
// fewer than two sizes.
func slope(points []point) float64 {
	n, x, y, xx, xy := float64(len(points)), 0.0, 0.0, 0.0, 0.0
	for _, p := range points {
		lx, ly := math.Log(p.size), math.Log(p.figure)
		x, y, xx, xy = x+lx, y+ly, xx+lx*lx, xy+lx*ly
	}
	return (n*xy - x*y) / (n*xx - x*x)
}

// exponents are those of all ways that were measured, and not stopped, with two sizes or
// more.
func (r *results) exponents() map[string]exponent {
	points := map[string][3][]point{}
	for _, m := range r.Sizes {
		for _, w := range m.Ways {
			c := median(w.Turns)
			if c.Stopped {
				continue
			}
			name := w.Part + ", " + w.Name
			figures := [3]float64{c.Wall.Seconds(), c.CPU.Seconds(), float64(c.Peak)}
			of := points[name]
			for i := range of {
				of[i] = append(of[i], point{float64(m.Pods), figures[i]})
			}
			points[name] = of
		}
	}
	all := map[string]exponent{}
	for name, of := range points {
		if len(of[0]) > 1 {
			all[name] = exponent{slope(of[0]), slope(of[1]), slope(of[2])}
		}
	}
	return all
}
