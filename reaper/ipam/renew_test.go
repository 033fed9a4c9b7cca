package ipam_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A renewer renews the warrants of one key, and refuses the others. It notes how many it was asked
// for.
type renewer struct {
	key    string
	asked  *[]int
	halted error
}

func (r renewer) Renew(_ context.Context, ws []ipam.Warrant) ([]ipam.Warrant, []error) {
	*r.asked = append(*r.asked, len(ws))
	fresh, errs := make([]ipam.Warrant, len(ws)), make([]error, len(ws))
	for i, w := range ws {
		if errs[i] = ipam.ErrReturned; w.For().Key == r.key {
			fresh[i], errs[i] = ipam.NewWarrant(w.For(), time.Now(), r), nil
		}
	}
	return fresh, errs
}

func (r renewer) Halted() error { return r.halted }

// Promise 4. Each warrant is renewed by what gave it, all of one together, and the answers are in the order
// of the warrants.
func TestWarrantsAreRenewedByWhatGaveThem(t *testing.T) {
	var asked []int
	as := allocations(4)
	one, two := renewer{key: "0", asked: &asked}, renewer{key: "2", asked: &asked}
	long := time.Now().Add(-time.Hour)
	ws := []ipam.Warrant{ipam.NewWarrant(&as[0], long, one), {}, ipam.NewWarrant(&as[2], long, two), ipam.NewWarrant(&as[3], long, one)}
	fresh, errs := ipam.Renew(t.Context(), ws)
	for i, want := range []error{nil, ipam.ErrNoWarrant, nil, ipam.ErrReturned} {
		if !errors.Is(errs[i], want) {
			t.Errorf("answer %d is %v, want %v", i, errs[i], want)
		}
		if a, err := fresh[i].Allocation(); (err == nil) != (want == nil) || err == nil && a.Key != as[i].Key {
			t.Errorf("warrant %d is for %q, %v", i, a.Key, err)
		}
	}
	if len(asked) != 2 || asked[0]+asked[1] != 3 {
		t.Errorf("the looks were for %v warrants, want one for two and one for one", asked)
	}
	if _, err := ws[0].Allocation(); ws[1].For() != nil || err == nil || err.Error() != "not decided: the second look was 1h0m0s ago" {
		t.Errorf("the first has %v, want its age; the zero one is for %v", err, ws[1].For())
	}
}

// Promise 2. No part of a warrant permits anything.
func TestPartOfAWarrantPermitsNothing(t *testing.T) {
	a := webAllocation()
	for _, w := range []ipam.Warrant{{}, ipam.NewWarrant(nil, time.Now(), nil), ipam.NewWarrant(&a, time.Time{}, nil)} {
		if _, err := w.Allocation(); !errors.Is(err, ipam.ErrNoWarrant) {
			t.Errorf("%v, want ErrNoWarrant", err)
		}
	}
}

// A batch has to be written before the first of its warrants expires.
func TestFirstWarrantToExpire(t *testing.T) {
	as := allocations(3)
	as[0].Adoption = ipam.NeverAdopted
	now := time.Now()
	never, young, old := ipam.NewWarrant(&as[0], now, nil), ipam.NewWarrant(&as[1], now.Add(time.Second), nil), ipam.NewWarrant(&as[2], now, nil)
	for _, tt := range []struct {
		ws   []ipam.Warrant
		want time.Time
	}{
		{[]ipam.Warrant{never, young, old}, now.Add(ipam.Freshness)},
		{[]ipam.Warrant{old, young, never}, now.Add(ipam.Freshness)},
		{[]ipam.Warrant{never, young}, now.Add(ipam.Freshness + time.Second)},
		{nil, time.Time{}},
	} {
		equal(t, "first to expire", ipam.FirstToExpire(tt.ws), tt.want)
	}
}
