package kit_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
)

const node = "node-1"

// ready makes the node and an IPv4 pool with blocks of 16 addresses.
func ready(t *testing.T, d *calico.Datastore) {
	t.Helper()
	must(t, d.CreateNode(t.Context(), node))
	must(t, d.ApplyPool(t.Context(), "four", netip.MustParsePrefix("10.30.0.0/24"), 28))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func add(t *testing.T, d *calico.Datastore, s calico.Sandbox) []netip.Addr {
	t.Helper()
	ips, err := d.Add(t.Context(), s)
	must(t, err)
	return ips
}

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
	cmpopts.IgnoreFields(calico.CheckReport{}, "Allocations", "Text", "File"),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
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
