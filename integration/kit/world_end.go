package kit

import (
	"maps"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

// Undisturbed runs to the end that every other run must reach: only what is in use and what waits
// is left. It returns the writes of the run.
func (w *World) Undisturbed() []string {
	w.Helper()
	w.Proxy.Reset()
	r := w.Run(ReleaseNow, "--all").Report
	for _, e := range r.Entries {
		stays := e.Owner.Pod == "live" || strings.HasPrefix(e.Owner.Pod, "slow-")
		if stays == (e.Outcome == "released") {
			w.Errorf("%s %s of %s: %s %s", e.Backend, e.Key, e.Owner.Pod, e.Reason, e.Outcome)
		}
	}
	if r.Summary.Released != Records {
		w.Errorf("%d were released, want %d", r.Summary.Released, Records)
	}
	w.End = w.Stores()
	writes := proxy.Writes(w.Proxy)
	w.Run(ReleaseNow) // and forget what was released
	left, err := w.Memory.Seen(w.Context())
	w.Must(err)
	w.patient = nil
	for id := range left {
		w.patient = append(w.patient, id)
	}
	if len(w.patient) != Waits {
		w.Errorf("the ledger remembers %d entries, want %d", len(w.patient), Waits)
	}
	w.WantStores("after a second run", w.End)
	w.Proxy.Reset()
	return writes
}

// Converge runs until the stores are as at the end, byte for byte, and fails the test unless what
// waits has waited all the time.
func (w *World) Converge() {
	w.Helper()
	w.ConvergeTo(Store.Bytes)
	w.WantRemembered()
}

// ConvergeTo runs until a view of the stores is as at the end. What has lost its address in a
// crash, or was recreated, must wait however short the grace period is: the run that first sees it
// is moved far into the past.
func (w *World) ConvergeTo(view func(Store) map[string]string) {
	w.Helper()
	w.Proxy.Reset()
	want := view(w.End)
	for range 2 {
		w.Run(ReleaseNow)
		if maps.Equal(want, view(w.Stores())) {
			return
		}
		w.Age()
	}
	w.Run(ReleaseNow)
	if diff := cmp.Diff(want, view(w.Stores())); diff != "" {
		w.Errorf("stores in the end (-want +got):\n%s", diff)
	}
}

// WantStores fails the test unless the stores hold the same, byte for byte.
func (w *World) WantStores(when string, want Store) {
	w.Helper()
	WantT(w, when, want.Bytes(), w.Stores().Bytes())
}

// WantInUse fails the test unless everything that an undisturbed run leaves is there.
func (w *World) WantInUse() {
	w.Helper()
	is := w.Stores().Held()
	for place, holder := range w.End.Held() {
		if is[place] != holder {
			w.Errorf("%s: %q, want %q", place, is[place], holder)
		}
	}
}

// WantSingle fails the test unless every block meets Calico's invariants, and each
// overlapping-range reservation names the same pod as the pool of the LAN.
func (w *World) WantSingle() {
	w.Helper()
	_, err := w.Allocated(w.Context())
	w.Must(err)
	all := w.Stores()
	entries := all.Owners()
	for _, o := range all {
		if o.Resource != Reservations {
			continue
		}
		entry, pod := entries[strings.ReplaceAll(LAN.Range, "/", "-")+" "+o.Name], entries[o.Name]
		if owner, _, _ := strings.Cut(entry, " "); entry != "" && owner != pod {
			w.Errorf("the reservation of %s is of %s, and the pool has %s", o.Name, pod, entry)
		}
	}
}

// Attached makes a pod show an address of the LAN.
func Attached(ip string) cluster.PodOption {
	return cluster.Networks(cluster.Attached(Shop+"/lan", "net1", ip))
}
