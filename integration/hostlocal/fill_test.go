package hostlocal_test

import (
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"
)

// fill writes so many leases of sandboxes that are gone, as the plugin writes them, and
// returns their names. The plugin itself would take some milliseconds for each.
func (w *world) fill(network string, leases int) []string {
	w.Helper()
	w.must(os.MkdirAll(w.path(dataDir, network), 0o755))
	ip := netip.MustParsePrefix(w.spans[network][0].Subnet).Addr()
	for range 16 { // those that the plugin gives to live ones
		ip = ip.Next()
	}
	at := time.Now().Add(-dead)
	var names []string
	for i := range leases {
		ip = ip.Next()
		path := w.lease(network, ip.String())
		w.must(os.WriteFile(path, fmt.Appendf(nil, "%064x\r\neth0", i), 0o600))
		w.must(os.Chtimes(path, at, at))
		names = append(names, ip.String())
	}
	return names
}

// A run over many leases ends, counts them, and releases those that are dead and no other
// (promises 1 and 7).
func TestEveryOneOfManyLeases(t *testing.T) {
	leases := 65_000
	if testing.Short() {
		leases = 2_500
	}
	w := newWorld(t, span{Subnet: "10.0.0.0/8"})
	for i := range 3 {
		w.live(pods, sandbox(fmt.Sprint("live-", i)))
	}
	w.fill(pods, leases)
	kept := w.run(0).Summary // with each in the report
	if kept.Entries != leases+3 || kept.InUse != 3 || kept.Released != leases || kept.Failed != 0 {
		t.Errorf("the run counts %+v, want %d released beside 3", kept, leases)
	}
	if left := w.content(); len(left) != 5 { // with lock and cursor
		t.Errorf("%d files are left, want 5", len(left))
	}
}
