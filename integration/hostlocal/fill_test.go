package hostlocal_test

import (
	"fmt"
	"net/netip"
	"os"
	"time"
)

// fill writes leases of sandboxes that are gone, as the plugin does, and returns their names. The
// plugin itself would take some milliseconds for each.
func (w *world) fill(network string, leases int) []string {
	w.Helper()
	w.must(os.MkdirAll(w.path(dataDir, network), 0o755))
	ip := netip.MustParsePrefix(w.spans[network][0].Subnet).Addr()
	for range 16 { // left for live sandboxes
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
