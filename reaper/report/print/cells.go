package print

import (
	"cmp"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// unknown stands for a figure that is not known. It is never 0.
const unknown = "unknown"

// sizeOf returns a number of addresses that may be unknown.
func sizeOf(n *big.Int) string {
	if n == nil {
		return unknown
	}
	return n.String()
}

// clock returns a time in UTC, or nothing.
func clock(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// podOf returns the namespace and the name of an owner's pod, or nothing.
func podOf(o ipam.EntryOwner) string { return strings.Trim(o.Namespace+"/"+o.Pod, "/") }

// nameOf returns the address of an entry, or its key if it has no address.
func nameOf(ip, key string) string {
	if ip == "" {
		return "key " + key
	}
	return ip
}

// addresses sorts addresses and returns each once. It leaves out empty ones.
func addresses(names []string) []string {
	slices.SortFunc(names, compareIPs)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// compareIPs orders addresses by their value. Any other text comes before them.
func compareIPs(a, b string) int {
	one, _ := netip.ParseAddr(a)
	other, _ := netip.ParseAddr(b)
	return cmp.Or(one.Compare(other), cmp.Compare(a, b))
}
