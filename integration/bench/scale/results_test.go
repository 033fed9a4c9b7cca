package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSlopeIsTheExponent(t *testing.T) {
	for _, exponent := range []float64{0, 1, 1.05, 2} {
		var points []point
		for _, n := range []float64{10_000, 20_000, 40_000, 75_000} {
			points = append(points, point{n, 3 * math.Pow(n, exponent)})
		}
		if got := slope(points); math.Abs(got-exponent) > 1e-9 {
			t.Errorf("slope = %v, want %v", got, exponent)
		}
	}
}

// A way that was stopped has no exponent, because its time says nothing.
func TestExponentsAreOfWhatCameToItsEnd(t *testing.T) {
	var r results
	for _, pods := range []int{10, 20} {
		m := measured{Pods: pods}
		done := cost{Wall: time.Duration(pods) * time.Second, CPU: time.Second, Peak: pods * pods}
		m.add(way{part: "run", name: floorWay}, done)
		done.Stopped = true
		m.add(way{part: "run", name: reaperWay}, done)
		r.Sizes = append(r.Sizes, m)
	}
	got := r.exponents()
	if len(got) != 1 {
		t.Fatalf("exponents = %v", got)
	}
	e := got["run, floor"]
	for i, figure := range []float64{e.Wall - 1, e.CPU, e.Peak - 2} {
		if math.Abs(figure) > 1e-9 {
			t.Errorf("exponent %d is off by %v in %+v", i, figure, e)
		}
	}
}

func TestMedianIsOfEachFigure(t *testing.T) {
	got := median([]cost{
		{Wall: 3, CPU: 1, Peak: 5, Left: 7, Requests: map[string]int{"list pods": 3}},
		{Wall: 1, CPU: 3, Peak: 4},
		{Wall: 2, CPU: 2, Peak: 6, Requests: map[string]int{"list pods": 2}},
	})
	want := cost{Wall: 2, CPU: 2, Peak: 5, Left: 7, Requests: map[string]int{"list pods": 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("median (-want +got):\n%s", diff)
	}
}

// A run that released half in the same time has twice the time of a release.
func TestTableComparesReleases(t *testing.T) {
	m := measured{Pods: 10}
	m.add(way{part: "run", name: floorWay}, cost{Wall: time.Second, CPU: time.Second, Released: 100})
	m.add(way{part: "run", name: reaperWay}, cost{Wall: time.Second, CPU: time.Second, Released: 50, Left: 50})
	var out strings.Builder
	r := results{Sizes: []measured{m}}
	if err := r.table(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if got := strings.Fields(lines[len(lines)-1]); len(got) < 5 || got[len(got)-3] != "2.00" {
		t.Errorf("table:\n%s", out.String())
	}
}

func TestMetricsCountRequestsByVerbAndResource(t *testing.T) {
	got, err := countRequests([]byte(`# HELP apiserver_request_total Counter
apiserver_request_total{code="200",resource="pods",verb="LIST"} 3
apiserver_request_total{code="410",resource="pods",verb="LIST"} 1
apiserver_request_total{code="0",resource="pods",verb="WATCH"} 9
apiserver_request_total{code="200",resource="",verb="GET"} 9
apiserver_request_total{code="200",resource="leases",verb="PUT"} 1e+01
apiserver_request_slo_total{code="200",resource="leases",verb="PUT"} 9
`))
	want := map[string]int{"list pods": 4, "put leases": 10}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("requests: %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(map[string]int{"list pods": 1}, difference(want, map[string]int{"list pods": 3, "put leases": 10})); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
}
