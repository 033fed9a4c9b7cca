package kit_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
)

// addPod gives a new pod an address.
func addPod(t *testing.T, d *calico.Datastore, name string) (calico.Sandbox, netip.Addr) {
	t.Helper()
	s := calico.NewSandbox("shop", name, node)
	ips := add(t, d, s)
	must(t, d.CreatePod(t.Context(), s, ips))
	return s, ips[0]
}

// addLeak leaks an address, and returns it and its handle.
func addLeak(t *testing.T, d *calico.Datastore, pod string) (calico.Sandbox, netip.Addr) {
	t.Helper()
	s := calico.NewSandbox("shop", pod, node)
	return s, add(t, d, s)[0]
}

func check(t *testing.T, d *calico.Datastore) *calico.CheckReport {
	t.Helper()
	r, err := d.Check(t.Context())
	must(t, err)
	return r
}

// findings leaves what a report says to be wrong.
var findings = cmp.Options{
	cmpopts.IgnoreFields(calico.CheckReport{}, "Allocations", "Text", "File"), equalAddrs,
}

func TestCheckFindsNothingWhereNothingIs(t *testing.T) {
	calico.EachT(t, func(t *testing.T, d *calico.Datastore) {
		ready(t, d)
		s, ip := addPod(t, d, "web-0")
		r := check(t, d)
		if diff := cmp.Diff(&calico.CheckReport{}, r, findings); diff != "" {
			t.Errorf("report (-want +got):\n%s\n%s", diff, r.Text)
		}
		if a := r.Allocations[ip]; len(a) != 1 || a[0].Handle != s.Handle() || a[0].Pod != "web-0" || !a[0].InUse {
			t.Errorf("allocations of %s: %+v, want one, in use by web-0", ip, a)
		}
	})
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	calico.EachT(t, func(t *testing.T, d *calico.Datastore) {
		ctx := t.Context()
		ready(t, d)
		_, leak := addLeak(t, d, "gone")
		lost, lostIP := addPod(t, d, "handle-lost")
		must(t, d.Delete(ctx, calico.Handle, d.HandleName(lost.Handle())))
		must(t, d.PutHandle(ctx, "k8s-pod-network.stray", map[netip.Prefix]int{netip.MustParsePrefix("10.30.0.0/28"): 1}))
		thief := calico.NewSandbox("shop", "thief", node)
		stolen := netip.MustParseAddr("10.30.0.99")
		must(t, d.CreatePod(ctx, thief, []netip.Addr{stolen}))
		bare, bareIP := addPod(t, d, "bare")
		must(t, d.Edit(ctx, calico.Block, d.BlockName(netip.PrefixFrom(bareIP, 28).Masked()), func(b map[string]any) {
			for _, a := range b["attributes"].([]any) {
				if a := a.(map[string]any); a["handle_id"] == bare.Handle() {
					delete(a, "handle_id")
				}
			}
		}))

		r := check(t, d)
		want := &calico.CheckReport{
			Leaked:         []netip.Addr{leak},
			NotAllocated:   []netip.Addr{stolen},
			NoHandle:       []netip.Addr{bareIP},
			LeakedHandles:  []string{bare.Handle(), "k8s-pod-network.stray"},
			MissingHandles: []string{lost.Handle()},
			Problems:       4,
		}
		if diff := cmp.Diff(want, r, findings, cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Errorf("report (-want +got):\n%s\n%s", diff, r.Text)
		}
		if a := r.Allocations[lostIP]; len(a) != 1 || !a[0].InUse {
			t.Errorf("allocations of %s: %+v, want one in use", lostIP, a)
		}
	})
}

func TestReleaseFromReport(t *testing.T) {
	for name, release := range map[string]func(context.Context, *calico.Datastore, *calico.CheckReport) (string, error){
		"forced": func(ctx context.Context, d *calico.Datastore, r *calico.CheckReport) (string, error) {
			return d.ReleaseFromReport(ctx, r)
		},
		"locked": func(ctx context.Context, d *calico.Datastore, _ *calico.CheckReport) (string, error) {
			return d.ReleaseLocked(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			calico.EachT(t, func(t *testing.T, d *calico.Datastore) {
				ready(t, d)
				addLeak(t, d, "gone")
				kept, _ := addPod(t, d, "web-0")
				out, err := release(t.Context(), d, check(t, d))
				must(t, err)
				if r := check(t, d); r.Problems > 0 {
					t.Errorf("after the release: %s\nwhich said: %s", r.Text, out)
				}
				if diff := cmp.Diff([]string{d.HandleName(kept.Handle())}, handles(t, d)); diff != "" {
					t.Errorf("handles (-want +got):\n%s", diff)
				}
				blocks(t, d)
			})
		})
	}
}
